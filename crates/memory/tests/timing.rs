//! Times of media and policies, each as probe, issue, not ready a moment before, ready.

use crate::common::{controller_of, memory, write};
use durasim_memory::{
    AddressMapping, Command, CommandKind, DdrTiming, DdrTimingConfig, MediaConfig, MediaKind, Memory, MemoryConfig,
    PagePolicy, Step, WritePolicy,
};
use durasim_types::{LineAddr, Picos};

const T: DdrTiming = DdrTiming::DDR3_1600K;
const CK: Picos = T.t_ck_ps;
/// Lines of a row, banks of a rank.
const COLUMNS: u64 = 128;
const BANKS: u64 = 8;
/// After everything that a test does first, and no refresh in between.
const LATER: Picos = 1_000_000;

/// Two ranks of DDR3-1600 whose places are plain to compute.
fn ddr3() -> MediaConfig {
    MediaConfig { ranks: Some(2), permute_banks: Some(false), ..MediaConfig::of(MediaKind::Ddr3) }
}

fn line(rank: u64, bank: u64, row: u64) -> u64 {
    ((row * 2 + rank) * BANKS + bank) * COLUMNS
}

#[derive(Clone, Copy, PartialEq)]
enum Do {
    Read(u64),
    Write(u64),
}

/// Gives an access to the memory at a time.
fn issue(memory: &mut Memory, access: Do, at: Picos) {
    while memory.step(at).is_some() {}
    match access {
        Do::Read(line) => drop(memory.read(LineAddr(line), at)),
        Do::Write(line) => assert!(memory.submit(write(line, 1), at)),
    }
    // Commands at a time are given after it: something may arrive at that time.
    while memory.step(at + 1).is_some() {}
}

/// The commands of accesses, each at its time.
fn commands(media: &MediaConfig, accesses: &[(Do, Picos)]) -> Vec<Command> {
    let mut config = controller_of(media.clone());
    config.controller.coalesce_writes = false;
    let mut memory = memory(&config);
    memory.start_trace();
    accesses.iter().for_each(|&(access, at)| issue(&mut memory, access, at));
    while memory.step(Picos::MAX).is_some() {}
    memory.take_trace(0)
}

fn times(commands: &[Command], kind: CommandKind) -> Vec<Picos> {
    commands.iter().filter(|command| command.kind == kind).map(|command| command.at_ps).collect()
}

/// The last command of a kind comes at `ready` if it is asked for so early that `ready` decides, a clock before it, or
/// with it; a clock later if it is asked for a clock later.
fn comes_at(media: &MediaConfig, before: &[(Do, Picos)], access: Do, kind: CommandKind, ready: Picos) {
    let last = |at: Picos| *times(&commands(media, &[before, &[(access, at)]].concat()), kind).last().unwrap();
    let asked = before.last().unwrap().1;
    assert_eq!(last(asked), ready, "asked for early");
    assert_eq!(last(ready - 1), ready, "not ready before");
    assert_eq!(last(ready), ready, "ready");
    assert_eq!(last(ready + 1), ready + CK, "at the next clock");
    assert_eq!(last(ready + CK), ready + CK);
}

#[test]
fn a_read_of_a_closed_row_takes_activation_latency_and_burst() {
    let mut memory = memory(&controller_of(ddr3()));
    let done = T.t_rcd_ps + T.t_cas_ps + T.t_burst_ps;
    assert_eq!(memory.read(LineAddr(0), 0).done_ps, done);
    assert_eq!(memory.read(LineAddr(1), LATER).done_ps, LATER + T.t_cas_ps + T.t_burst_ps, "the row is open");
    let conflict = T.t_rp_ps + done;
    assert_eq!(memory.read(LineAddr(line(0, 0, 1)), 2 * LATER).done_ps, 2 * LATER + conflict, "another row");
    assert_eq!(memory.stats(0).1.map(|rows| [rows.hits, rows.misses, rows.conflicts]), Some([1, 1, 1]));
}

#[test]
fn closed_pages_open_a_row_for_each_access() {
    let mut memory = memory(&controller_of(MediaConfig { page_policy: Some(PagePolicy::Closed), ..ddr3() }));
    let done = T.t_rcd_ps + T.t_cas_ps + T.t_burst_ps;
    assert_eq!(memory.read(LineAddr(0), 0).done_ps, done);
    // The row closes after tRAS and can be opened after tRP.
    assert_eq!(memory.read(LineAddr(1), 0).done_ps, T.t_ras_ps + T.t_rp_ps + done);
    assert_eq!(memory.read(LineAddr(line(0, 0, 1)), LATER).done_ps, LATER + done, "no row has to be closed first");
}

#[test]
fn commands_of_a_bank_keep_their_distance() {
    let media = ddr3();
    let (read, other_row) = (Do::Read(0), Do::Read(line(0, 0, 1)));
    let opened = [(read, 0)];
    comes_at(&media, &opened, other_row, CommandKind::Pre, T.t_ras_ps);
    comes_at(&media, &[(read, 0), (Do::Read(1), LATER)], other_row, CommandKind::Pre, LATER + T.t_rtp_ps);
    let written = LATER + T.t_cwl_ps + T.t_burst_ps + T.t_wr_ps;
    comes_at(&media, &[(read, 0), (Do::Write(1), LATER)], other_row, CommandKind::Pre, written);
    // ACT follows PRE and the column command follows ACT without being asked again.
    let all = commands(&media, &[(read, 0), (other_row, LATER)]);
    assert_eq!(times(&all, CommandKind::Pre), [LATER]);
    assert_eq!(times(&all, CommandKind::Act), [0, LATER + T.t_rp_ps]);
    assert_eq!(times(&all, CommandKind::Rd), [T.t_rcd_ps, LATER + T.t_rp_ps + T.t_rcd_ps]);
}

#[test]
fn columns_of_a_rank_and_between_ranks_share_the_data_bus() {
    let media = ddr3();
    // Both rows are open.
    let opened = [(Do::Read(line(0, 0, 0)), 0), (Do::Read(line(0, 1, 0)), 0), (Do::Read(line(1, 0, 0)), 0)];
    let after_opening = |first: Do| [&opened[..], &[(first, LATER)]].concat();
    let (near, far) = (line(0, 1, 0) + 1, line(1, 0, 0) + 1);
    let (reads, writes) = (after_opening(Do::Read(1)), after_opening(Do::Write(1)));
    comes_at(&media, &reads, Do::Read(near), CommandKind::Rd, LATER + T.t_ccd_l_ps);
    comes_at(&media, &writes, Do::Write(near), CommandKind::Wr, LATER + T.t_ccd_l_ps);
    comes_at(&media, &reads, Do::Read(far), CommandKind::Rd, LATER + T.t_burst_ps + 2 * CK);
    let turned = LATER + T.t_cas_ps + T.t_burst_ps + T.t_rtw_ps - T.t_cwl_ps;
    comes_at(&media, &reads, Do::Write(near), CommandKind::Wr, turned);
    let received = LATER + T.t_cwl_ps + T.t_burst_ps;
    comes_at(&media, &writes, Do::Read(near), CommandKind::Rd, received + T.t_wtr_l_ps);
    comes_at(&media, &writes, Do::Read(far), CommandKind::Rd, (received + 2 * CK - T.t_cas_ps).next_multiple_of(CK));
}

#[test]
fn activations_of_a_rank_keep_their_distance() {
    let media = ddr3();
    let act = |bank| Do::Read(line(0, bank, 0));
    let apart = T.t_rrd_l_ps.next_multiple_of(CK);
    comes_at(&media, &[(act(0), 0)], act(1), CommandKind::Act, apart);
    assert!(4 * apart < T.t_faw_ps, "the window decides about the fifth");
    let four = [(act(0), 0), (act(1), 0), (act(2), 0), (act(3), 0)];
    comes_at(&media, &four, act(4), CommandKind::Act, T.t_faw_ps);
    let acts = times(&commands(&media, &[&four[..], &[(act(4), 0)]].concat()), CommandKind::Act);
    assert_eq!(acts, [0, apart, 2 * apart, 3 * apart, T.t_faw_ps]);
    // Another rank has its own window; the command bus is free in the next clock.
    let all = commands(&media, &[&four[..], &[(Do::Read(line(1, 0, 0)), 0)]].concat());
    assert_eq!(all.iter().find(|c| c.rank == 1).map(|c| (c.kind, c.at_ps)), Some((CommandKind::Act, CK)));
}

#[test]
fn groups_of_banks_have_longer_times_of_their_own() {
    let media = MediaConfig { permute_banks: Some(false), ..MediaConfig::of(MediaKind::Ddr4) };
    let t = DdrTiming::DDR4_3200AA;
    let row_of = |bank: u64| bank * COLUMNS;
    let ready = |first: u64, second: u64| {
        let opened = [(Do::Read(row_of(first)), 0), (Do::Read(row_of(second)), 0)];
        let all =
            [&opened[..], &[(Do::Read(row_of(first) + 1), LATER), (Do::Read(row_of(second) + 1), LATER)]].concat();
        let all = commands(&media, &all);
        let (acts, reads) = (times(&all, CommandKind::Act), times(&all, CommandKind::Rd));
        (acts[1] - acts[0], reads[3] - reads[2])
    };
    assert_eq!(ready(0, 1), (t.t_rrd_s_ps, t.t_ccd_s_ps), "different groups");
    assert_eq!(ready(0, 4), (t.t_rrd_l_ps.next_multiple_of(t.t_ck_ps), t.t_ccd_l_ps), "the same group");
}

#[test]
fn a_refresh_closes_rows_and_takes_its_time() {
    let media = ddr3();
    // The second of two ranks: it is refreshed at the end of each period.
    let rank = line(1, 0, 0);
    let usable = T.t_refi_ps + T.t_rfc_ps;
    let done = |at: Picos| {
        let mut memory = memory(&controller_of(media.clone()));
        memory.read(LineAddr(rank), 0);
        memory.read(LineAddr(rank + 1), at).done_ps
    };
    let (hit, miss) = (T.t_cas_ps + T.t_burst_ps, T.t_rcd_ps + T.t_cas_ps + T.t_burst_ps);
    // A read whose command comes before the refresh is due is served; then the row is closed, and the rank refreshed.
    let last = T.t_refi_ps - CK;
    assert_eq!(done(last), last + hit);
    let mut late = memory(&controller_of(media.clone()));
    late.read(LineAddr(rank), 0);
    late.read(LineAddr(rank + 1), last);
    let refreshed = last + T.t_rtp_ps + T.t_rp_ps + T.t_rfc_ps;
    assert_eq!(
        late.read(LineAddr(rank + 2), last + CK).done_ps,
        refreshed + miss,
        "held by the refresh no longer than needed"
    );
    // Without it the row is closed as soon as the refresh is due.
    let usable = usable + T.t_rp_ps;
    assert_eq!(done(T.t_refi_ps), usable + miss);
    assert_eq!(done(usable), usable + miss, "the row was closed");
    assert_eq!(done(usable + CK), usable + CK + miss);
    let mut memory = memory(&controller_of(media.clone()));
    // The other rank is refreshed half a period earlier.
    assert_eq!(memory.read(LineAddr(0), T.t_refi_ps).done_ps, T.t_refi_ps + CK + miss, "the bus is taken");
}

#[test]
fn adjacent_lines_lie_in_a_row_or_in_different_banks() {
    let places = |mapping: AddressMapping| {
        let media = MediaConfig { address_mapping: Some(mapping), ..ddr3() };
        let lines: Vec<(Do, Picos)> = (0..20).map(|n| (Do::Read(n), n * LATER)).collect();
        let all = commands(
            &MediaConfig { timing: Some(DdrTimingConfig { t_refi_ps: Some(0), ..Default::default() }), ..media },
            &lines,
        );
        let reads: Vec<Command> = all.into_iter().filter(|command| command.kind == CommandKind::Rd).collect();
        reads.iter().map(|command| (command.rank, command.bank, command.row, command.column)).collect::<Vec<_>>()
    };
    let in_row = places(AddressMapping::RowRankBankColumn);
    assert!(in_row.iter().zip(0..).all(|(&place, n)| place == (0, 0, 0, n)), "{in_row:?}");
    let in_banks = places(AddressMapping::RowColumnRankBank);
    let expected = |n: u32| (n as u16 / 8 % 2, n as u16 % 8, 0, n / 16);
    assert!(in_banks.iter().zip(0..).all(|(&place, n)| place == expected(n)), "{in_banks:?}");
}

#[test]
fn an_earlier_request_takes_a_gap_on_the_bus_but_not_in_its_bank() {
    let mut memory = memory(&controller_of(ddr3()));
    let miss = T.t_rcd_ps + T.t_cas_ps + T.t_burst_ps;
    assert_eq!(memory.read(LineAddr(line(0, 0, 0)), LATER).done_ps, LATER + miss);
    assert_eq!(memory.read(LineAddr(line(0, 1, 0)), LATER / 2).done_ps, LATER / 2 + miss, "another bank");
    // The commands of the first read are given by now.
    memory.read(LineAddr(line(0, 2, 0)), 2 * LATER);
    let hit = LATER + T.t_rcd_ps + T.t_ccd_l_ps + T.t_cas_ps + T.t_burst_ps;
    assert_eq!(memory.read(LineAddr(line(0, 0, 0) + 1), LATER / 2).done_ps, hit, "after the last command of its bank");
}

/// TC (DAC 2017), table 2: 65 ns and 76 ns, four ranks of eight banks.
#[test]
fn stt_ram_has_its_latencies_and_a_bus_that_changes_ranks() {
    let media = MediaConfig { permute_banks: Some(false), ..MediaConfig::of(MediaKind::SttRam) };
    let mut m = memory(&controller_of(media.clone()));
    assert_eq!(m.read(LineAddr(0), 1000).done_ps, 66_000);
    assert_eq!(m.read(LineAddr(1), 1000).done_ps, 71_000, "another bank: 5 ns for the line before it on the bus");
    assert_eq!(m.read(LineAddr(8), 1000).done_ps, 78_500, "another rank: and 2.5 ns for the change");
    assert_eq!(m.read(LineAddr(32), 1000).done_ps, 131_000, "the same bank");
    assert!(m.submit(write(3, 1), 500_000));
    assert_eq!(m.step(575_999), None);
    assert!(matches!(m.step(576_000), Some(Step::Written { at_ps: 576_000, .. })));
    // A write sends its line first, a read last: they meet on the bus only if they start so far apart.
    let mut m = memory(&controller_of(media));
    issue(&mut m, Do::Write(0), 60_000);
    assert_eq!(m.read(LineAddr(1), 0).done_ps, 70_000, "its line waits for that of the write");
    assert_eq!(m.read(LineAddr(2), 30_000).done_ps, 95_000);
}

/// A controller of four entries with one bank of 150 ns and 100 ns that drains from three to one.
fn read_first(banks: u32) -> MemoryConfig {
    let mut config = controller_of(MediaConfig { banks: Some(banks), ..MediaConfig::of(MediaKind::Fixed) });
    config.controller.write_queue_entries = 4;
    config.controller.write_policy = Some(WritePolicy::ReadFirst);
    config.controller.drain_start_percent = Some(75);
    config.controller.drain_stop_percent = Some(25);
    config
}

#[test]
fn writes_wait_for_the_end_of_reads_or_for_a_drain() {
    let mut m = memory(&read_first(2));
    assert_eq!(m.read(LineAddr(0), 0).done_ps, 150_000);
    // The bank of line 1 is free, but a read is in service.
    assert!(m.submit(write(1, 1), 10_000) && m.submit(write(3, 1), 20_000));
    assert_eq!(m.step(249_999), None);
    assert!(matches!(m.step(250_000), Some(Step::Written { at_ps: 250_000, .. })), "from the end of the read on");
    assert_eq!(m.stats(0).0.drains, 0);

    let mut eager = memory(&MemoryConfig { controller: Default::default(), ..read_first(2) });
    eager.read(LineAddr(0), 0);
    eager.submit(write(1, 1), 10_000);
    assert!(matches!(eager.step(110_000), Some(Step::Written { at_ps: 110_000, .. })), "without the policy at once");
}

#[test]
fn a_drain_goes_from_the_high_threshold_to_the_low_one_and_reads_wait_for_it() {
    let mut m = memory(&read_first(2));
    m.read(LineAddr(0), 0);
    for (line, at) in [(1, 10_000), (3, 20_000)] {
        assert!(m.submit(write(line, 1), at));
    }
    assert_eq!(m.stats(0).0.drains, 0, "two of four");
    assert!(m.submit(write(5, 1), 30_000));
    assert_eq!(m.stats(0).0.drains, 1, "three of four");
    // Two writes leave: bank 1 serves one from 30 ns, the other from 130 ns on. The third stays.
    assert_eq!(m.stats(0).0.media_write_bytes[0], 128);
    // A read of the other bank, which is free from 150 ns on, waits for the start of the last write only.
    let done = m.read(LineAddr(2), 40_000).done_ps;
    assert_eq!(done, 150_000 + 150_000);
    assert_eq!(m.stats(0).0.reads_behind_drains, 1);
    assert!(matches!(m.step(130_000), Some(Step::Written { at_ps: 130_000, .. })));
    assert!(matches!(m.step(230_000), Some(Step::Written { at_ps: 230_000, .. })));
    // The remaining writes wait for the end of the reads.
    assert_eq!(m.step(399_999), None);
    assert!(matches!(m.step(400_000), Some(Step::Written { at_ps: 400_000, .. })));
}

#[test]
fn a_read_of_an_idle_bank_waits_until_the_last_write_of_a_drain_has_started() {
    let mut m = memory(&read_first(4));
    // Three writes of one bank and a bank that no access uses.
    for line in [0, 4, 8] {
        assert!(m.submit(write(line, 1), 0));
    }
    assert_eq!(m.read(LineAddr(1), 99_999).done_ps, 100_000 + 5_000 + 150_000, "and until its line is sent");
    assert_eq!(m.read(LineAddr(2), 100_000).done_ps, 110_000 + 150_000, "the drain is over: only the channel is taken");
    let mut from_before = memory(&read_first(4));
    for line in [0, 4, 8] {
        assert!(from_before.submit(write(line, 1), 50_000));
    }
    assert_eq!(from_before.read(LineAddr(1), 10_000).done_ps, 160_000, "it came before the drain");
}

#[test]
fn blocks_go_to_the_controllers_in_turn_and_each_has_banks_and_a_bus_of_its_own() {
    for controllers in 1..=8 {
        for interleave_bytes in [64, 256, 4096] {
            let mut config = controller_of(MediaConfig { banks: Some(1), ..MediaConfig::of(MediaKind::Fixed) });
            (config.controllers, config.interleave_bytes) = (controllers, interleave_bytes);
            let mut m = memory(&config);
            m.start_trace();
            let lines = interleave_bytes / 64;
            for block in 0..2 * u64::from(controllers) {
                for line in block * lines..(block + 1) * lines {
                    assert_eq!(u64::from(m.controller_of(LineAddr(line))), block % u64::from(controllers));
                }
                // The first block of each controller finds it idle, the second one finds it busy.
                let done = m.read(LineAddr(block * lines), 0).done_ps;
                assert_eq!(done, 150_000 * (1 + block / u64::from(controllers)));
            }
            // Lines keep their places apart, and a controller numbers its own without gaps.
            let mut numbers: Vec<(u16, u64)> = m.take_trace(0).iter().map(|c| (c.controller, c.row)).collect();
            numbers.sort_unstable();
            let expected = (0..controllers).flat_map(|c| [(c, 0), (c, lines)]);
            assert!(numbers.into_iter().eq(expected));
        }
    }
}

/// LAD (MICRO 2019), table 3: DDR4 with a clock of 0.625 ns.
#[test]
fn the_times_of_lad_give_its_latencies() {
    let timing = DdrTimingConfig {
        t_ck_ps: Some(625),
        t_ras_ps: Some(24_000),
        t_rcd_ps: Some(13_750),
        t_cas_ps: Some(11_200),
        t_wr_ps: Some(10_000),
        t_rp_ps: Some(13_750),
        ..DdrTimingConfig::default()
    };
    let media = MediaConfig { timing: Some(timing), ..MediaConfig::of(MediaKind::Ddr4) };
    let mut m = memory(&controller_of(media));
    // 11.2 ns are 18 clocks.
    assert_eq!(m.read(LineAddr(0), 0).done_ps, 13_750 + 11_250 + 2500);
    assert_eq!(m.read(LineAddr(1), LATER).done_ps, LATER + 11_250 + 2500);
}

/// P-INSPECT: nonvolatile memory with the commands of DDR, at 1 GHz: tRCD 58, tRAS 80, tWR 180.
#[test]
fn nonvolatile_rows_take_long_to_open_and_longer_to_write_back() {
    let timing = DdrTimingConfig {
        t_ck_ps: Some(1000),
        t_rcd_ps: Some(58_000),
        t_ras_ps: Some(80_000),
        t_wr_ps: Some(180_000),
        t_refi_ps: Some(0),
        ..DdrTiming::DDR3_1600K.to_config()
    };
    let media = MediaConfig { timing: Some(timing), permute_banks: Some(false), ..MediaConfig::of(MediaKind::Ddr3) };
    let mut m = memory(&controller_of(media));
    m.start_trace();
    issue(&mut m, Do::Write(0), 0);
    // The write has its command by then.
    issue(&mut m, Do::Read(BANKS * COLUMNS), 60_000);
    let commands = m.take_trace(0);
    assert_eq!(times(&commands, CommandKind::Wr), [58_000]);
    assert_eq!(times(&commands, CommandKind::Pre), [58_000 + 10_000 + 5000 + 180_000], "another row has to wait");
}
