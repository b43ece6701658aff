//! The commands that a channel was given lately, and how far apart any two of them have to be.
//!
//! Commands of different banks meet on the command bus, on the data bus and in their rank. All of these rules say that
//! one command may follow another after so much time; [`CommandSpacing::apart_ps`] is that table. A new command is placed at the
//! first clock that is far enough from all commands before it and after it: the latter are there because requests
//! with earlier times come later.

use super::timing::DdrTiming;
use durasim_types::Picos;
use serde::{Deserialize, Serialize};
use std::collections::VecDeque;

/// Commands that are remembered; nothing is placed before older ones.
const REMEMBERED: usize = 256;
/// ACTs that a rank may be given within tFAW.
const ACTIVATIONS_IN_FAW: usize = 4;

/// The demands of a command on the channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum ChannelUse {
    /// The command bus alone: PRE.
    Bus,
    /// Current of the rank: ACT.
    Activate,
    /// The data bus, from the media.
    Read,
    /// The data bus, to the media.
    Write,
}

/// A command as the others see it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct IssuedCommand {
    pub channel_use: ChannelUse,
    pub rank: u32,
    pub group: u32,
}

/// Times between commands of a channel, in whole clocks.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct CommandSpacing {
    pub t: DdrTiming,
    pub rank_switch_ps: Picos,
}

impl CommandSpacing {
    /// The time after `first` at which a command `second` of another bank may be given.
    pub fn apart_ps(&self, first: IssuedCommand, second: IssuedCommand) -> Picos {
        let t = &self.t;
        let (same_rank, same_group) = (first.rank == second.rank, first.group == second.group);
        let by_group = |s_ps: Picos, l_ps: Picos| if same_group { l_ps } else { s_ps };
        let needed_ps = match (first.channel_use, second.channel_use) {
            (ChannelUse::Activate, ChannelUse::Activate) if same_rank => by_group(t.t_rrd_s_ps, t.t_rrd_l_ps),
            (ChannelUse::Read, ChannelUse::Read) | (ChannelUse::Write, ChannelUse::Write) => {
                if same_rank {
                    t.t_burst_ps.max(by_group(t.t_ccd_s_ps, t.t_ccd_l_ps))
                } else {
                    t.t_burst_ps + self.rank_switch_ps
                }
            }
            (ChannelUse::Read, ChannelUse::Write) => {
                let idle_ps = if same_rank { t.t_rtw_ps } else { t.t_rtw_ps.max(self.rank_switch_ps) };
                (t.t_cas_ps + t.t_burst_ps + idle_ps).saturating_sub(t.t_cwl_ps)
            }
            (ChannelUse::Write, ChannelUse::Read) if same_rank => {
                let recovered_ps = t.t_cwl_ps + t.t_burst_ps + by_group(t.t_wtr_s_ps, t.t_wtr_l_ps);
                recovered_ps.max((t.t_cwl_ps + t.t_burst_ps).saturating_sub(t.t_cas_ps))
            }
            (ChannelUse::Write, ChannelUse::Read) => {
                (t.t_cwl_ps + t.t_burst_ps + self.rank_switch_ps).saturating_sub(t.t_cas_ps)
            }
            _ => 0,
        };
        // One command in a clock.
        needed_ps.max(t.t_ck_ps)
    }

    /// Commands this far apart have nothing to do with each other.
    fn reach_ps(&self) -> Picos {
        let t = &self.t;
        let data_ps = t.t_cas_ps.max(t.t_cwl_ps) + t.t_burst_ps + self.rank_switch_ps.max(t.t_rtw_ps).max(t.t_wtr_l_ps);
        let data_ps = data_ps.max(t.t_cwl_ps + t.t_burst_ps + t.t_wtr_s_ps);
        [data_ps, t.t_rrd_s_ps, t.t_rrd_l_ps, t.t_ccd_s_ps, t.t_ccd_l_ps, t.t_faw_ps, t.t_ck_ps]
            .into_iter()
            .fold(0, Picos::max)
    }
}

/// Commands of a channel by their times.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Recent {
    rules: CommandSpacing,
    reach_ps: Picos,
    given: VecDeque<(Picos, IssuedCommand)>,
    floor_ps: Picos,
}

impl Recent {
    pub fn new(rules: CommandSpacing) -> Self {
        let reach_ps = rules.reach_ps();
        Recent { rules, reach_ps, given: VecDeque::new(), floor_ps: 0 }
    }

    /// Makes `copy` one in which nothing may be given before `from_ps`.
    pub fn copy_into(&self, copy: &mut Recent, from_ps: Picos) {
        let first = self.given.partition_point(|&(given_ps, _)| given_ps + self.reach_ps <= from_ps);
        copy.given.clear();
        copy.given.extend(self.given.range(first..));
        copy.floor_ps = self.floor_ps.max(from_ps);
    }

    /// The first clock, not before `at_ps`, in which `new` may be given.
    pub fn first(&self, new: IssuedCommand, at_ps: Picos) -> Picos {
        let t_ck_ps = self.rules.t.t_ck_ps;
        let mut at = at_ps.max(self.floor_ps).next_multiple_of(t_ck_ps);
        loop {
            let next = self.allowed(new, at);
            if next == at {
                return at;
            }
            at = next.next_multiple_of(t_ck_ps);
        }
    }

    /// `at` if `new` may be given then, else a later time before which it may not.
    fn allowed(&self, new: IssuedCommand, at: Picos) -> Picos {
        let first = self.given.partition_point(|&(given_ps, _)| given_ps + self.reach_ps <= at);
        for &(given_ps, given) in self.given.range(first..) {
            if given_ps >= at + self.reach_ps {
                break;
            }
            let free_ps = given_ps + self.rules.apart_ps(given, new);
            let too_close = if given_ps <= at { free_ps > at } else { at + self.rules.apart_ps(new, given) > given_ps };
            if too_close {
                return free_ps;
            }
        }
        if new.channel_use == ChannelUse::Activate { self.outside_faw(new.rank, at, first) } else { at }
    }

    /// `at` if a rank may be given one more ACT then, else a later time before which it may not.
    fn outside_faw(&self, rank: u32, at: Picos, first: usize) -> Picos {
        let faw_ps = self.rules.t.t_faw_ps;
        let acts = self
            .given
            .range(first..)
            .filter(|(_, given)| given.channel_use == ChannelUse::Activate && given.rank == rank);
        let mut window = [0; ACTIVATIONS_IN_FAW];
        for (seen, &(given_ps, _)) in acts.enumerate() {
            window.rotate_left(1);
            window[ACTIVATIONS_IN_FAW - 1] = given_ps;
            // Four earlier ones and the new one, whichever of them comes first.
            if seen + 1 >= ACTIVATIONS_IN_FAW && window[ACTIVATIONS_IN_FAW - 1].max(at) < window[0].min(at) + faw_ps {
                return window[0] + faw_ps;
            }
        }
        at
    }

    /// Notes a command at a time that [`Recent::first`] has found.
    pub fn give(&mut self, at_ps: Picos, given: IssuedCommand) {
        let index = self.given.partition_point(|&(other_ps, _)| other_ps < at_ps);
        self.given.insert(index, (at_ps, given));
        if self.given.len() > REMEMBERED
            && let Some((oldest_ps, _)) = self.given.pop_front()
        {
            self.floor_ps = oldest_ps + self.reach_ps;
        }
    }

    /// The times between commands.
    pub fn times(&self) -> &DdrTiming {
        &self.rules.t
    }

    /// The time of the last command.
    pub fn end_ps(&self) -> Picos {
        self.given.back().map_or(0, |&(at, _)| at)
    }
}
