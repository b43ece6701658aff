//! Two hardware threads of one core, each with a window of its own: they issue to the same units, and each has half of the
//! queues while both run.

use super::{Window, front_entries};
use crate::CoreConfig;

impl Window {
    /// Lets `threads` threads run on the core: each has an equal part of the reorder buffer and the queues from now on.
    pub(crate) fn share_queues(&mut self, config: &CoreConfig, threads: u32) {
        self.front.resize(front_entries(config, threads));
        self.rob.resize(config.rob_entries / threads);
        self.loads.resize(config.load_queue_entries / threads);
        self.waiting.resize(config.issue_queue_entries / threads);
    }

    /// Exchanges what the units of the core, and its issue width, have taken up. The thread that acts has it.
    pub(crate) fn swap_units(&mut self, other: &mut Window) {
        std::mem::swap(&mut self.calendar, &mut other.calendar);
        std::mem::swap(&mut self.busy, &mut other.busy);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::inst_info::{InstInfo, Kind, NO_REGISTER};
    use durasim_isa::Class;
    use durasim_types::Cycle;

    /// One instruction without operands; the cycle of its commit.
    fn step(window: &mut Window, class: Class) -> Cycle {
        let (pool, units, latency_cycles, pipelined) = window.unit(class);
        let (kind, dest) = (Kind::Plain, NO_REGISTER);
        let shape = InstInfo { class, kind, pool, units, pipelined, sources: [0; 3], dest, latency_cycles, bytes: 0 };
        let dispatched = window.enter::<false>(0, 0);
        let issued = window.issue(&shape, dispatched, 0);
        window.leave_issue_queue(issued);
        window.commit::<false>(issued + Cycle::from(latency_cycles), |_, _| {})
    }

    /// The cycles that `n` instructions take on each of two threads, which take turns as their times demand.
    fn together(config: &CoreConfig, n: usize, class: Class) -> [Cycle; 2] {
        let (mut first, mut second) = (Window::new(config), Window::new(config));
        first.share_queues(config, 2);
        second.share_queues(config, 2);
        for _ in 0..2 * n {
            if first.commit_cycle() <= second.commit_cycle() {
                step(&mut first, class);
            } else {
                second.swap_units(&mut first);
                step(&mut second, class);
                second.swap_units(&mut first);
            }
        }
        [first.commit_cycle(), second.commit_cycle()]
    }

    fn alone(config: &CoreConfig, n: usize, class: Class) -> Cycle {
        let mut window = Window::new(config);
        (0..n).map(|_| step(&mut window, class)).last().unwrap_or(0)
    }

    #[test]
    fn units_and_issue_width_are_shared() {
        let config = CoreConfig::default();
        for class in [Class::IntAlu, Class::IntMul, Class::IntDiv] {
            let (one, both) = (alone(&config, 4000, class), together(&config, 4000, class));
            for cycles in both {
                let ratio = cycles as f64 / one as f64;
                assert!((1.95..2.05).contains(&ratio), "{class:?}: {cycles} cycles beside another thread, {one} alone");
            }
        }
    }

    #[test]
    fn half_a_reorder_buffer_keeps_half_as_many_instructions_after_one_that_waits() {
        let config = CoreConfig { rob_entries: 64, ..CoreConfig::default() };
        for (threads, entries) in [(1, 64), (2, 32)] {
            let mut window = Window::new(&config);
            window.share_queues(&config, threads);
            window.commit::<false>(1000, |_, _| {});
            let entered: Vec<Cycle> = (0..entries).map(|_| window.enter_and_wait()).collect();
            assert!(entered[entries - 2] < 1000 && entered[entries - 1] > 1000, "{threads}: {entered:?}");
        }
    }

    impl Window {
        /// The cycle in which an instruction is dispatched that commits after the one that waits.
        fn enter_and_wait(&mut self) -> Cycle {
            let dispatched = self.enter::<false>(0, 0);
            self.commit::<false>(0, |_, _| {});
            dispatched
        }
    }

    #[test]
    fn what_a_thread_gets_back_is_free() {
        let config = CoreConfig { rob_entries: 8, ..CoreConfig::default() };
        let mut window = Window::new(&config);
        window.share_queues(&config, 2);
        let last = (0..100).map(|_| step(&mut window, Class::IntMul)).last().unwrap();
        assert_eq!(window.rob.freed_after(0), 4);
        window.share_queues(&config, 1);
        assert_eq!((window.rob.entries(), window.rob.freed_after(0), window.rob.freed_after(last)), (8, 4, 0));
        window.share_queues(&config, 2);
        assert_eq!((window.rob.entries(), window.rob.freed_after(last - 1) > 0), (4, true));
    }
}
