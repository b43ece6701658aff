"""The keys of machine files as arguments of `durasim.Machine`, from the schema of machine files.

Written by tools/generate_schemas.py: to change it, change the parameters in crates.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, TypedDict


class CacheConfig(TypedDict, total=False):
    """One cache.

    Attributes:
        latency_cycles: Latency of a hit in core cycles, the look-up of the tags included.
        mshrs: Misses in flight at most.
        replacement: Replacement policy of a full set, where the durability design has no preference.
        size_bytes: Capacity in bytes: ways times a power of two of 64-byte lines.
        tag_latency_cycles: Core cycles after which a miss continues to the next level: those of the look-up of the
            tags. If not given, the same as `latency_cycles`, as if tags and data were read together (DEVIATIONS.md,
            tag-latency).
        ways: Associativity.
    """

    latency_cycles: int
    mshrs: int
    replacement: Literal["lru", "random"]
    size_bytes: int | str
    tag_latency_cycles: int | None
    ways: int


class ControllerConfig(TypedDict, total=False):
    """The queues of a controller. Every controller of a memory has its own.

    Attributes:
        coalesce_writes: Whether a write joins a waiting entry of the same line and cause.
        drain_idle_percent: `gem5` only: without reads, writes begin when more than so much of the queue waits. 50 if
            not given (`write_low_thresh_perc` of its MemCtrl).
        drain_start_percent: `read-first`, `gem5`: writes go before reads when so much of the write pending queue is
            filled. 80 if not given, with `gem5` 85 (`write_high_thresh_perc` of its MemCtrl).
        drain_stop_percent: `read-first` only: a drain ends when no more than so much of the queue waits. 50 if not
            given (DEVIATIONS.md, write-drain).
        drain_writes_min: `gem5` only: the number of writes that are served before reads that wait have their turn. 16
            if not given (`min_writes_per_switch` of its MemCtrl).
        read_entry_until: The event up to which a read takes its entry of the read queue: its first command (`command`,
            if not given and the media have rows) or the arrival of its data (`data`, if not given for other media).
        read_queue_entries: Reads in flight at most.
        row_hits_max: Media with rows: the number of accesses of an open row that go before older requests for another
            row of the bank. 16 if not given (`max_accesses_per_row` of gem5's MemInterface).
        write_entry_until: The event up to which a write takes its entry of the write pending queue: the command that
            writes it (`command`) or the moment at which the cells hold it (`data`, if not given). `command` is refused
            for `read-first` in front of media without rows.
        write_policy: The time at which writes leave the queue: `read-first` for media with rows, `when-free` for
            others, if not given.
        write_queue_entries: Entries of the write pending queue.
    """

    coalesce_writes: bool
    drain_idle_percent: int | None
    drain_start_percent: int | None
    drain_stop_percent: int | None
    drain_writes_min: int | None
    read_entry_until: Literal["command", "data"] | None
    read_queue_entries: int
    row_hits_max: int | None
    write_entry_until: Literal["command", "data"] | None
    write_policy: Literal["when-free", "read-first", "gem5"] | None
    write_queue_entries: int


class CoreConfig(TypedDict, total=False):
    """An out-of-order core.

    Attributes:
        complete_to_commit_cycles: Cycles from the completion of an instruction to its commit at the earliest.
        context_switch_cycles: Cycles of a context switch, during which the core does nothing else.
        decode_redirect_cycles: Cycles from the fetch of a taken branch unknown to the branch target buffer to the next
            fetch: decode finds its target.
        fences: Fences that wait.
        fetch_queue_entries: Instructions that wait between fetch and rename at most.
        fetch_to_rename_cycles: Cycles from the fetch of an instruction to its renaming, where room in the queues is
            needed.
        forward_latency_cycles: Cycles from a store's data to a load that takes it from the store queue.
        issue_queue_entries: Entries of the issue queue.
        l1d_bank_ports: Ports of each bank.
        l1d_banks: Banks of the L1D, by words of eight bytes: loads of the same bank in a cycle need ports of it. A
            power of two; without it loads are bound by `units.memory` alone.
        load_queue_entries: Entries of the load queue.
        log_registers: Hardware log registers; without it as many as are needed. Of meaning on designs with log
            registers.
        mispredict_redirect_cycles: Cycles from the execution of a mispredicted branch to the next fetch; the L1I's
            latency follows if the line is another one.
        ownership_prefetch: Whether the line of a store is asked for at its commit, ahead of its turn.
        pipelined_stores: Whether a store may leave the store queue in the cycle after the one before it; else it waits
            for the L1D's answer to that one.
        predictor: Branch prediction.
        rename_to_dispatch_cycles: Cycles from the renaming of an instruction to its dispatch; it may issue in the cycle
            of its dispatch.
        rob_entries: Entries of the reorder buffer.
        serialize_cycles: Cycles from the commit of the instruction before to the issue of one that must not be
            speculative.
        squash_width: Instructions of a wrong path that the reorder buffer drops in a cycle; nothing is renamed
            meanwhile.
        store_queue_entries: Entries of the store queue, from dispatch until the store has left for the L1D.
        store_sets: Prediction of dependences between loads and stores.
        system_call_cycles: Cycles of a system call, during which the core does nothing else.
        time_slice_cycles: Cycles after which a thread makes room for another one that is ready.
        units: Functional units.
        width: Instructions fetched, dispatched, issued and committed per cycle at most.
    """

    complete_to_commit_cycles: int
    context_switch_cycles: int
    decode_redirect_cycles: int
    fences: Literal["ordering", "all"]
    fetch_queue_entries: int
    fetch_to_rename_cycles: int
    forward_latency_cycles: int
    issue_queue_entries: int
    l1d_bank_ports: int
    l1d_banks: int | None
    load_queue_entries: int
    log_registers: int | None
    mispredict_redirect_cycles: int
    ownership_prefetch: bool
    pipelined_stores: bool
    predictor: PredictorConfig
    rename_to_dispatch_cycles: int
    rob_entries: int
    serialize_cycles: int
    squash_width: int
    store_queue_entries: int
    store_sets: StoreSetsConfig
    system_call_cycles: int
    time_slice_cycles: int
    units: UnitsConfig
    width: int


class DdrTimingConfig(TypedDict, total=False):
    """Times as a machine file gives them; what is not given is that of the standard.

    Attributes:
        t_burst_ps: The time 64 bytes take over the data bus: four clocks for a burst of eight over 64 bits.
        t_cas_ps: tCAS or CL: from a read command to its first data.
        t_ccd_l_ps: tCCD_L (DDR3: tCCD): between column commands to one group of banks.
        t_ccd_s_ps: tCCD_S: between column commands to different groups of banks of a rank.
        t_ck_ps: tCK, a clock of the memory: commands begin with one, and the controller rounds all other times up to
            clocks.
        t_cwl_ps: CWL: from a write command to its first data.
        t_faw_ps: tFAW: no five ACTs of a rank within this time.
        t_ras_ps: tRAS: from ACT to PRE of its bank.
        t_rcd_ps: tRCD: from ACT to a read or write command of its bank.
        t_refi_ps: tREFI: a rank is refreshed once in this time; 0 for media that need no refresh.
        t_rfc_ps: tRFC: from REF to the next command of its rank.
        t_rp_ps: tRP: from PRE to ACT of its bank.
        t_rrd_l_ps: tRRD_L (DDR3: tRRD): between ACTs of one group of banks.
        t_rrd_s_ps: tRRD_S: between ACTs of different groups of banks of a rank.
        t_rtp_ps: tRTP: from a read command to PRE of its bank.
        t_rtw_ps: Time for which the data bus is idle between the data of a read and that of a write after it.
        t_wr_ps: tWR: from the last data of a write to PRE of its bank.
        t_wtr_l_ps: tWTR_L (DDR3: tWTR): from the last data of a write to a read command of its group of banks.
        t_wtr_s_ps: tWTR_S: from the last data of a write to a read command of another group of banks of the rank.
    """

    t_burst_ps: int | None
    t_cas_ps: int | None
    t_ccd_l_ps: int | None
    t_ccd_s_ps: int | None
    t_ck_ps: int | None
    t_cwl_ps: int | None
    t_faw_ps: int | None
    t_ras_ps: int | None
    t_rcd_ps: int | None
    t_refi_ps: int | None
    t_rfc_ps: int | None
    t_rp_ps: int | None
    t_rrd_l_ps: int | None
    t_rrd_s_ps: int | None
    t_rtp_ps: int | None
    t_rtw_ps: int | None
    t_wr_ps: int | None
    t_wtr_l_ps: int | None
    t_wtr_s_ps: int | None


class InterconnectConfig(TypedDict, total=False):
    """Connections of the parts.

    Attributes:
        clean_line_answer: The component that answers a cache-block operation on a line of persistent memory that no
            cache has dirty: `controller` or `llc`. A fence waits for the answer, which nothing is written for.
        controller_link_bytes: Not on a mesh: bytes of data that the link into a memory controller carries in a cycle,
            and the link out of it. Requests and acknowledgements have channels of their own, one message per cycle. 16
            if not given, as in gem5's system crossbar (DEVIATIONS.md, hops).
        controller_tiles: `mesh`: the tile of each memory controller, those of persistent memory first, then those of
            the DRAM if it has controllers of its own; to be given.
        controller_to_core_cycles: Not on a mesh: cycles of a message from a memory controller to a core, such as an
            acknowledgement. If not given, those of an answer through the levels.
        core_to_controller_cycles: Not on a mesh: cycles of a message from a core to a memory controller: a cleaned
            line, a record of a log, a message of a design. If not given, the look-ups of a clean: the latencies of L1D,
            L2, if there is one, and LLC with the requests between them.
        hop_cycles: `mesh`: cycles that the head of a message takes from a tile to the next one; to be given.
        inclusion: Inclusion of the levels below the L1D.
        l1d_write_back_buffers: Dirty lines that each L1D may have in flight to the level below it; a miss whose victim
            finds none free waits.
        l2_write_back_buffers: Dirty lines that each L2 may have in flight to the LLC. 8 if not given.
        link_width_bytes: `crossbar`: bytes of a line that a link carries in a cycle. 32 if not given (likewise).
            `mesh`: bytes of data that a link between two tiles carries in a cycle; to be given. A power of two.
        llc_banks: `crossbar`: banks of the last level, among which lines take turns, a power of two. 8 if not given
            (DEVIATIONS.md, crossbar).
        memory_request_cycles: Not on a mesh: cycles of a request from the LLC to a memory controller. 0 if not given.
        memory_response_cycles: Not on a mesh: cycles of data from a memory controller to the LLC. 0 if not given.
        mesh_columns: `mesh`: tiles in a row, 1 to 16; to be given. Core i and bank i of the last level are on tile i,
            counted row by row from 0. There may be more tiles than cores: each has a bank, and lines take turns among
            all banks.
        mesh_rows: `mesh`: rows of tiles, 1 to 16; to be given.
        path_jitter_cycles: Each message to or from a controller, except reads, takes a drawn number of cycles more,
            from 0 to this: for crash campaigns.
        remote_controllers: `mesh`: the controllers, by their numbers in `controller_tiles`, whose answers take
            `remote_response_ns` more, as if they belonged to another socket. None if not given.
        remote_response_ns: `mesh`: nanoseconds that everything takes more that a remote controller sends: data,
            acknowledgements and messages.
        request_cycles: Cycles that a request takes per level on its way down, beside the latency of the level it
            leaves.
        response_cycles: Cycles that an answer takes per level on its way up.
        router_entry_cycles: `mesh`: cycles that the head of a message takes from its sender into the router of the
            tile. 0 if not given. Between ends on one tile no message takes them.
        router_exit_cycles: `mesh`: cycles that it takes out of the router to its receiver. Likewise.
        router_ports: `mesh`: what has ports of its own into the router of its tile and out of it, each as wide as a
            link. `per-end` if not given (DEVIATIONS.md, lad-machine).
        snoop_cycles: Cycles from the directory to the private caches of another core, beside the latency of the slowest
            level there that has a copy.
        topology: Connection of private caches and the last level.
        write_back_buffers: Lines that may wait between the LLC and the write queues before a miss has to wait.
    """

    clean_line_answer: Literal["controller", "llc"]
    controller_link_bytes: int | str | None
    controller_tiles: Sequence[int] | None
    controller_to_core_cycles: int | None
    core_to_controller_cycles: int | None
    hop_cycles: int | None
    inclusion: Literal["inclusive", "non-inclusive", "exclusive"]
    l1d_write_back_buffers: int
    l2_write_back_buffers: int | None
    link_width_bytes: int | str | None
    llc_banks: int | None
    memory_request_cycles: int | None
    memory_response_cycles: int | None
    mesh_columns: int | None
    mesh_rows: int | None
    path_jitter_cycles: int
    remote_controllers: Sequence[int] | None
    remote_response_ns: int | None
    request_cycles: int
    response_cycles: int
    router_entry_cycles: int | None
    router_exit_cycles: int | None
    router_ports: Literal["per-end", "per-tile"] | None
    snoop_cycles: int
    topology: Literal["uniform", "crossbar", "mesh"]
    write_back_buffers: int


class MediaConfig(TypedDict, total=False):
    """Media of a controller.

    Attributes:
        address_mapping: `ddr3`, `ddr4`: which bits of an address choose what (`row-rank-bank-column`).
        bandwidth_mb_per_s: `fixed`, `stt-ram` (12,800), `pmem-module` (21,328, a channel of 2,666 MT/s): bandwidth of
            the channel in MB/s (10^6 bytes).
        bank_groups: `ddr4`: groups of banks in a rank (4), a power of two.
        banks: `fixed`: accesses in service at a time (16), lines are spread over the banks by address. `stt-ram`,
            `ddr3`, `ddr4`: banks of each rank (8; `ddr4` 16), a power of two.
        block_bytes: `pmem-module`: bytes that the cells read and write at a time (256), a power of two.
        buffer_latency_ns: `pmem-module`: time of a line between the channel and a buffer, in nanoseconds (87).
        cell_queue_blocks: `pmem-module`: blocks in flight from that buffer to the cells at a time (16, as in VANS).
        cell_read_mb_per_s: `pmem-module`: bandwidth at which the cells are read, in MB/s (6,600).
        cell_write_mb_per_s: `pmem-module`: bandwidth at which they are written, in MB/s (2,300).
        kind: The kind, which decides what else can be set.
        page_policy: `ddr3`, `ddr4`: what becomes of a row after an access (`open`).
        permute_banks: `stt-ram`, `ddr3`, `ddr4`: the bits of a row permute the banks, so that a victim does not meet
            the line that replaces it in another row of the same bank (true; Zhang, Zhu and Zhang, MICRO 2000).
        rank_switch_ps: `stt-ram`, `ddr3`, `ddr4`: time for which the data bus is idle between bursts of different
            ranks, in picoseconds (two clocks: `stt-ram` and `ddr3` 2,500, `ddr4` 1,250).
        ranks: `stt-ram`, `ddr3`, `ddr4`: ranks on the channel (`stt-ram` 4, TC DAC 2017; `ddr3`, `ddr4` 1), a power of
            two.
        read_buffer_blocks: `pmem-module`: blocks in the buffer of those that were read (64).
        read_latency_ns: `fixed` (150), `stt-ram` (65, TC DAC 2017): latency of a read in nanoseconds. `pmem-module`
            (195): that of a read that no buffer answers, of a page with an entry in the table of addresses.
        row_bytes: `ddr3`, `ddr4`: bytes of a row over all chips of a rank (8192: eight chips with 1 KB each). `fixed`:
            bytes of adjacent lines that share a bank (64: none do). A power of two.
        table_miss_ns: `pmem-module`: time that a block of another page takes more, in nanoseconds (55). 0: the table
            delays nothing.
        table_pages: `pmem-module`: pages of 4 KB whose entries of the table of addresses the module holds (4,096).
        timing: `ddr3`, `ddr4`: times between commands, in picoseconds.
        write_buffer_blocks: `pmem-module`: blocks in the buffer in which written lines are combined (72: of 18 KB, not
            of 20, every block is written once).
        write_granularity_bytes: The least cost of one write for the media, in bytes: shorter writes count as this much.
        write_latency_ns: `fixed` (100), `stt-ram` (76, TC DAC 2017): latency of a write in nanoseconds.
    """

    address_mapping: Literal["row-rank-bank-column", "row-column-rank-bank"] | None
    bandwidth_mb_per_s: int | None
    bank_groups: int | None
    banks: int | None
    block_bytes: int | str | None
    buffer_latency_ns: int | None
    cell_queue_blocks: int | None
    cell_read_mb_per_s: int | None
    cell_write_mb_per_s: int | None
    kind: Literal["fixed", "stt-ram", "ddr3", "ddr4", "pmem-module"]
    page_policy: Literal["open", "closed"] | None
    permute_banks: bool | None
    rank_switch_ps: int | None
    ranks: int | None
    read_buffer_blocks: int | None
    read_latency_ns: int | None
    row_bytes: int | str | None
    table_miss_ns: int | None
    table_pages: int | None
    timing: DdrTimingConfig | None
    write_buffer_blocks: int | None
    write_granularity_bytes: int | str
    write_latency_ns: int | None


class MemoryConfig(TypedDict, total=False):
    """One kind of memory of a machine.

    Attributes:
        capacity_mib: Capacity in MiB, over all controllers.
        controller: The queues of each controller.
        controllers: Controllers, each with queues, banks and a channel of its own: 1 to 8.
        interleave_bytes: The number of bytes that belong to one controller before the next one's turn comes: a power of
            two from 64 to 4096. Of no effect with one controller. 4096 is how platforms interleave modules of
            persistent memory (Yang et al., "An Empirical Guide to the Behavior and Use of Scalable Persistent Memory",
            FAST 2020, section 2; DEVIATIONS.md, interleaving).
        media: The media of each controller.
    """

    capacity_mib: int
    controller: ControllerConfig
    controllers: int
    interleave_bytes: int | str
    media: MediaConfig


class PauseConfig(TypedDict, total=False):
    """Interval and length of random pauses of cores.

    Attributes:
        cycles_max: Maximum length of a pause in cycles: drawn from 1 to this value.
        interval_cycles: Mean cycles from the end of a pause to the next one, on any core: drawn from 1 to twice this
            value.
    """

    cycles_max: int
    interval_cycles: int


class PersistBufferConfig(TypedDict, total=False):
    """The battery-backed persist buffer that each core has in the domain `bbb`.

    Attributes:
        drain_threshold_percent: It drains its oldest line while more than this part of it is taken.
        entries: Lines that it holds.
    """

    drain_threshold_percent: int
    entries: int


class PlacePauseConfig(TypedDict, total=False):
    """Frequency and length of pauses of a core at a place where threads race.

    After a read of the clock, a fence, a marker, the begin or end of a hardware transaction, and the entry and the end
    of a handler.

    Attributes:
        cycles_max: Maximum length of a pause in cycles: drawn from 1 to this value.
        percent: Percentage of these places at which a core pauses.
    """

    cycles_max: int
    percent: int


class PredictorConfig(TypedDict, total=False):
    """Sizes of the branch prediction unit.

    Attributes:
        base_entries: 2-bit counters of the bimodal base; a power of two, 16 to 1048576.
        btb_entries: Entries of the branch target buffer, at most 1048576; entries divided by ways is a power of two.
        btb_ways: Ways of the branch target buffer, 1 to 64.
        compressed_branches_stay_taken: A compressed conditional branch that was predicted taken is learnt as taken,
            whatever it did: a defect of gem5 24.0 (gem5/gem5#1405), for comparisons with it.
        history_bits: Global history length of each tagged table in bits, strictly increasing, 1 to 1000; at most 15
            tables, none leaves the bimodal base alone.
        indirect_entries: Entries of the history-indexed table of indirect targets; a power of two, 16 to 65536, or 0
            for none.
        indirect_history_bits: Global history that indexes the table of indirect targets in bits, 1 to 1000.
        loop_entries: Entries of the 4-way loop predictor; a power of two, 4 to 4096, or 0 for none.
        ras_entries: Entries of the return address stack, 1 to 1024.
        tag_bits: Width of the tags of the tagged tables in bits, 4 to 15.
        tagged_entries: Entries of each tagged table; a power of two, 16 to 65536.
        useful_ageing_branches: Conditional branches between two ageings of the useful counters, 1024 to 2^30.
    """

    base_entries: int
    btb_entries: int
    btb_ways: int
    compressed_branches_stay_taken: bool
    history_bits: Sequence[int]
    indirect_entries: int
    indirect_history_bits: int
    loop_entries: int
    ras_entries: int
    tag_bits: int
    tagged_entries: int
    useful_ageing_branches: int


class StoreSetsConfig(TypedDict, total=False):
    """Sizes of the predictor. The defaults are those of gem5's O3 model.

    Attributes:
        clear_period: Loads and stores between two times at which all sets are forgotten.
        lfst_entries: Number of sets; a power of two, 16 to 65536.
        pc_shift_bits: Low bits of an instruction's address that do not count in the first table: with 1 each
            instruction has an entry of its own, with 2 compressed ones share theirs with a neighbour.
        ssit_entries: Entries of the table from instructions to sets; a power of two, 16 to 65536.
        violation_granularity_bytes: Bytes of the aligned blocks in which addresses of loads and stores are compared for
            violations of their order; a power of two, 1 to 64. A load from the block of an older store that it passed
            is squashed.
    """

    clear_period: int
    lfst_entries: int
    pc_shift_bits: int
    ssit_entries: int
    violation_granularity_bytes: int | str


class TlbConfig(TypedDict, total=False):
    """The TLBs of each core.

    Attributes:
        l1: The TLB for data, and another one like it for instructions. A look-up overlaps with the access of the L1D or
            L1I.
        l2: The TLB that both share; it is looked up after a miss of the first.
        walkers: Page walks of a core in progress at a time; others wait (DEVIATIONS.md, tlb).
    """

    l1: TlbLevelConfig
    l2: TlbLevelConfig
    walkers: int


class TlbLevelConfig(TypedDict, total=False):
    """One TLB.

    Attributes:
        entries: Translations of pages of 4 KB. It has this number divided by `ways` sets, rounded down; page n belongs
            to set n modulo the number of sets, which need not be a power of two (DEVIATIONS.md, tlb).
        latency_cycles: Cycles of a look-up.
        ways: Associativity.
    """

    entries: int
    latency_cycles: int
    ways: int


class UnitConfig(TypedDict, total=False):
    """Functional units of one kind.

    Attributes:
        count: Number of units.
        latency_cycles: Cycles from issue to result.
        pipelined: Whether a unit takes a new operation every cycle.
    """

    count: int
    latency_cycles: int
    pipelined: bool


class UnitsConfig(TypedDict, total=False):
    """Functional units by class. The defaults are those of gem5's O3 model.

    Attributes:
        fp_add: Floating-point add, compare, convert.
        fp_div: Floating-point division, on the multipliers.
        fp_fused: Fused multiplication and addition, on the multipliers.
        fp_mul: Floating-point multiplication; the units also fuse, divide and take roots.
        fp_sqrt: Square root, on the multipliers.
        int_alu: Integer arithmetic, branches, markers.
        int_div: Integer division, on the multipliers.
        int_mul: Integer multiplication; the units also divide.
        memory: Ports for loads and stores; `latency_cycles` is that of address generation.
    """

    fp_add: UnitConfig
    fp_div: UnitConfig
    fp_fused: UnitConfig
    fp_mul: UnitConfig
    fp_sqrt: UnitConfig
    int_alu: UnitConfig
    int_div: UnitConfig
    int_mul: UnitConfig
    memory: UnitConfig


class Fwb(TypedDict, total=False):
    """Parameters of FWB.

    Attributes:
        acknowledged_by: The event that a commit waits for with its last record (DEVIATIONS.md, fwb-acknowledgement).
        free_at: The event that frees the place of a record in the log buffer: Hercules, section 4.5.2, has FWB "wait
            for the drain of current log updates" (DEVIATIONS.md, fwb-acknowledgement).
        log_buffer_entries: Records of the volatile log buffer (DEVIATIONS.md, fwb-sizes: 15).
        log_bytes: Bytes of the circular log; a record takes 32 (DEVIATIONS.md, fwb-sizes: 4 MB).
        scan_from_percent: Share of the log, in percent, from which on scans follow each other whatever the period is:
            the period is right for one rate of stores alone (not in the paper; DEVIATIONS.md, fwb-scan).
        scan_lines_per_cycle: Lines that a scan looks at in a cycle (not in the paper; DEVIATIONS.md, fwb-scan).
        scan_period_cycles: Cycles between the beginnings of two scans (DEVIATIONS.md, fwb-sizes: 3 million for a log of
            4 MB).
        scan_takes_ports: Whether a scan takes the port of the L2 or LLC that it is in, so that look-ups there begin a
            cycle later (not in the paper; DEVIATIONS.md, fwb-scan).
        undo_cycles_per_record: Cycles that an abort takes for each record that it undoes (not in the paper;
            DEVIATIONS.md, fwb-abort).
        whole_lines: Whether no two writes to the log share a line: what records leave of a line is filled up
            (DEVIATIONS.md, fwb-combining).
        write_combining: Whether two records that share a line of the log leave the buffer in one write (DEVIATIONS.md,
            fwb-combining).
    """

    acknowledged_by: Literal["domain", "medium"]
    free_at: Literal["domain", "medium"]
    log_buffer_entries: int
    log_bytes: int | str
    scan_from_percent: int
    scan_lines_per_cycle: int
    scan_period_cycles: int
    scan_takes_ports: bool
    undo_cycles_per_record: int
    whole_lines: bool
    write_combining: bool


class Hercules(TypedDict, total=False):
    """Parameters of Hercules.

    Attributes:
        abort_threshold_percent: Share of persistent memory in percent that log zone and extension may take: a
            transaction that needs more aborts (section 4.2: 80).
        commit_wait: The event that the core waits for at a commit (not in the paper, whose Figure 11 shows that
            throughput falls with the latency of the state reset; DEVIATIONS.md, hercules-commit-wait).
        conflict_loser: The transaction that aborts when one asks for a line of another in a cache (not clear in the
            paper; DEVIATIONS.md, hercules-conflict).
        ewpq_entries: Entries of the eWPQ (section 4.2: 512).
        ewpq_extension_factor: Size of the eWPQ extension area in multiples of the eWPQ (section 4.2: 10).
        ewpq_home_bits: Bits of a home address that an eWPQ entry holds, the lowest of its line number (section 4.2:
            21).
        ewpq_search_cycles: Cycles of an eWPQ search (section 5: 10).
        extension_block_entries: Entries of a further block of the extension area (not in the paper; DEVIATIONS.md,
            hercules-extension-chain).
        extension_chain_bytes: Persistent memory for further blocks of the extension area, in bytes; 0 for none (not in
            the paper; DEVIATIONS.md, hercules-extension-chain).
        extension_lookup: The search of the extension area "with a target home address" (section 4.2; not in the paper;
            DEVIATIONS.md, hercules-extension-search).
        extension_search_first_cycles: Cycles to the first line that a search of the extension area reads; a scan pays
            them for each block, too (not in the paper; DEVIATIONS.md, hercules-extension-search).
        extension_search_line_cycles: Cycles for each further line that a search of the extension area reads (not in the
            paper; DEVIATIONS.md, hercules-extension-search).
        false_match_cycles: Cycles to read the full home address of a log entry that turns out to be another line's (not
            in the paper; DEVIATIONS.md, hercules-partial-match).
        l1d_missing_way_period: One L1D set in this number lacks one way, so that 32 KB become 30 KB; 0 for none
            (section 5, Table 2).
        log_extension_bytes: Persistent memory beside the log zone that the log may extend into, in bytes; 0 for none
            (section 4.4, "log extension"; the size is not in the paper; DEVIATIONS.md, hercules-log-extension).
        log_extension_chunk_entries: Log entries that are added to the log at a time (not in the paper; DEVIATIONS.md,
            hercules-log-extension).
        log_extension_cycles: Cycles until added log entries have been allocated (not in the paper; DEVIATIONS.md,
            hercules-log-extension).
        log_gc_chunk_entries: Successive log entries that are garbage-collected together (section 4.4: 32).
        log_gc_trigger_entries: Log entries from LogTail to LogHead, beyond which the log is garbage-collected (section
            4.4: 2^20).
        log_indirect_cycles: Cycles to look up where an added log entry lies, before it is loaded (not in the paper;
            DEVIATIONS.md, hercules-log-extension).
        log_zone_bytes: Size of the log zone in bytes (section 5: 256 MB).
        migration_period_instructions: Instructions between two scans for entries to migrate (section 4.2: three
            million).
        migrations_in_flight: Migrations in flight at a time (not in the paper; DEVIATIONS.md, background-concurrency).
        state_reset_cycles: Cycles of the state reset at commit and abort (section 5: 10).
        tag_latency_increase_percent: Longer tag latency of an access that involves a TransTag, in percent (section 5:
            30).
        tag_latency_rounding: Rounding of the longer tag latency to whole cycles (not in the paper; DEVIATIONS.md,
            hercules-tag-rounding).
        trans_tag_percent_l1d: Lines of an L1D set that may carry TransTags, in percent of its ways (section 5: 100).
        trans_tag_percent_l2: Lines of an L2 set that may carry TransTags, in percent of its ways (section 5: 50).
        trans_tag_percent_llc: Lines of an LLC set that may carry TransTags, in percent of its ways (section 5: 25).
        tx_id_bits: Bits of a TxID (section 4.1: 21).
        tx_len_store: The place where TxLen is stored (not in the paper; DEVIATIONS.md, hercules-txlen-store).
    """

    abort_threshold_percent: int
    commit_wait: Literal["reset", "none"]
    conflict_loser: Literal["owner", "requester"]
    ewpq_entries: int
    ewpq_extension_factor: int
    ewpq_home_bits: int
    ewpq_search_cycles: int
    extension_block_entries: int
    extension_chain_bytes: int | str
    extension_lookup: Literal["by_address", "scan"]
    extension_search_first_cycles: int
    extension_search_line_cycles: int
    false_match_cycles: int
    l1d_missing_way_period: int
    log_extension_bytes: int | str
    log_extension_chunk_entries: int
    log_extension_cycles: int
    log_gc_chunk_entries: int
    log_gc_trigger_entries: int
    log_indirect_cycles: int
    log_zone_bytes: int | str
    migration_period_instructions: int
    migrations_in_flight: int
    state_reset_cycles: int
    tag_latency_increase_percent: int
    tag_latency_rounding: Literal["up", "nearest", "down"]
    trans_tag_percent_l1d: int
    trans_tag_percent_l2: int
    trans_tag_percent_llc: int
    tx_id_bits: int
    tx_len_store: Literal["cached", "controller"]


class Hoop(TypedDict, total=False):
    """Parameters of HOOP. Names of structures are the paper's.

    Attributes:
        acknowledged_by: The part of the machine that acknowledges slices and entries, and with it the words of an OOP
            data buffer that are in a slice in flight (DEVIATIONS.md, hoop-commit).
        address_slices: Address slices, of 16 commits each (not in the paper; DEVIATIONS.md, hoop-address-slices).
        block_bytes: Bytes of a block of the OOP region (paper: 2 MB).
        commit: The event that ends a commit (DEVIATIONS.md, hoop-commit).
        copies_in_flight: Transactions whose slices the collector reads at a time, and lines that it writes home at a
            time (not in the paper; DEVIATIONS.md, hoop-collector).
        eviction_buffer_bytes: Bytes of the eviction buffer (paper: 128 KB).
        gc_period_ns: Nanoseconds between two collections in the background (paper: 10 ms).
        line_table: Whether a table knows the lines with words that are not home. Without it each line with the
            persistent bit that leaves the last level goes to the OOP region, and keeps that bit when it comes back
            (DEVIATIONS.md, hoop-line-table).
        line_table_bytes: Bytes of the line table, which knows the lines with words that are not home (not in the paper;
            as large as its mapping table; DEVIATIONS.md, hoop-line-table).
        mapping_table_bytes: Bytes of the mapping table (paper: 2 MB for all cores; 256 KB for each core is quoted too,
            DEVIATIONS.md, hoop-mapping-table).
        oop_buffer_bytes: Bytes of the OOP data buffer of each core (paper: 1 KB, eight slices).
        recovery_threads: Threads of recovery (paper: the 16 cores of its machine share recovery).
        region_bytes_max: The most bytes that the OOP region may have: its part of a large memory can be more than a run
            needs (as many slices as 24 bits can number).
        region_percent: The OOP region as a part of persistent memory, in percent (paper: 10).
        search_cycles: Cycles of a search of the mapping table, the line table, the eviction buffer and the OOP data
            buffers (not in the paper; DEVIATIONS.md, hoop-mapping-table).
        words: The way of stored words to it (DEVIATIONS.md, hoop-home).
    """

    acknowledged_by: Literal["domain", "medium"]
    address_slices: int
    block_bytes: int | str
    commit: Literal["recorded", "migrated"]
    copies_in_flight: int
    eviction_buffer_bytes: int | str
    gc_period_ns: int
    line_table: bool
    line_table_bytes: int | str
    mapping_table_bytes: int | str
    oop_buffer_bytes: int | str
    recovery_threads: int
    region_bytes_max: int
    region_percent: int
    search_cycles: int
    words: Literal["at_once", "sent"]


class Kiln(TypedDict, total=False):
    """Parameters of Kiln.

    Attributes:
        blocked_requests: The requests that wait while a commit is flushed (DEVIATIONS.md, kiln-blocking).
        copies_in_flight: Lines that the fall-back path copies at a time (DEVIATIONS.md, background-concurrency).
        copy_area_lines: Old lines that the area of the fall-back path holds (DEVIATIONS.md, kiln-overflow).
        fifo_entries: Entries of the FIFO of the L1D, and of that of the L2 if there is one, of each core
            (DEVIATIONS.md, kiln-fifo).
        fifo_walk_cycles: Cycles for each entry that a commit takes from a FIFO (DEVIATIONS.md, kiln-fifo).
        llc_banks: Banks of the last level with a port each, which take lines in turns, a power of two up to 64; without
            it an access takes any port that is free (DEVIATIONS.md, kiln-llc-ports).
        llc_fills: When a line from memory is written there (DEVIATIONS.md, kiln-llc-ports).
        llc_pipelined: The accesses that are pipelined there (DEVIATIONS.md, kiln-llc-ports).
        llc_ports_per_core: Ports of the last level for each core of the machine, as for a slice beside each core; all
            accesses to its array share them (DEVIATIONS.md, kiln-llc-ports).
        llc_read_latency_cycles: Cycles of a hit in the last level (Hercules: 40; TC: 10 ns).
        llc_size_factor: The capacity of the STT-RAM last level as a multiple of the machine's own, a power of two; it
            shrinks with the machine by itself (Hercules, Table 2: 64 MB where SRAM has 16 MB).
        llc_write_latency_cycles: Cycles of a write into the last level, and of the change of states that a commit makes
            (Hercules: 50; TC: 10 ns).
        overflow_of: The queue with that occupancy (DEVIATIONS.md, kiln-overflow).
        overflow_percent: Occupancy of the FIFOs of a core from which the fall-back path makes room, in percent (TC
            takes 90 for its own fall-back path; DEVIATIONS.md, kiln-overflow).
        pinned_lines: Whether uncommitted lines are no victims of the last level while it has others: the cost in misses
            is what they displace (TC, section 5.2).
        tx_id_bits: Bits of a TxID: one transaction less can be open at a time than there are numbers (DEVIATIONS.md,
            kiln-txid).
        versions: The place of the committed version of a line meanwhile (DEVIATIONS.md, kiln-home-first).
    """

    blocked_requests: Literal["all", "lines", "core", "all_and_core", "none"]
    copies_in_flight: int
    copy_area_lines: int
    fifo_entries: int
    fifo_walk_cycles: int
    llc_banks: int | None
    llc_fills: Literal["beside", "first"]
    llc_pipelined: Literal["none", "reads", "all"]
    llc_ports_per_core: int
    llc_read_latency_cycles: int
    llc_size_factor: int
    llc_write_latency_cycles: int
    overflow_of: Literal["fifos", "l1d_fifo", "request_queue"]
    overflow_percent: int
    pinned_lines: bool
    tx_id_bits: int
    versions: Literal["home-first", "two-in-llc"]


class Lad(TypedDict, total=False):
    """Parameters of LAD and LAD-Base.

    Attributes:
        dtx_id_bits: Bits of a DTX_ID (8, as 392 bytes in each controller imply, section 4.3; DEVIATIONS.md, lad-ids).
        logging_percent: Speculative entries of a queue, in percent of its entries, from which on its controller writes
            undo entries (section 4.6).
        purgatory_entries: Entries that the purgatory has room for; 0: as many as all queues have (section 4.8: a few
            KB).
        reclaim_period_cycles: Cycles between two visits of the thread of the operating system that reclaims undo
            entries (not known; DEVIATIONS.md, lad-log).
        tracking_sets: Sets of tracking structures beside each L1D; one of them is used, for one hardware thread (Table
            3).
        undo_cycles_per_store: Cycles that an abort takes for each store that it undoes (DEVIATIONS.md, lad-abort).
        undo_log_entries: Undo entries that each controller has room for at first (not known; DEVIATIONS.md, lad-log).
        undo_log_entries_max: Undo entries that each controller can be given at most (section 4.6: any number;
            DEVIATIONS.md, lad-log).
        undo_log_growth_cycles: Cycles from the interrupt of a controller whose log is nearly full until it has more
            room (not known; DEVIATIONS.md, lad-log).
    """

    dtx_id_bits: int
    logging_percent: int
    purgatory_entries: int
    reclaim_period_cycles: int
    tracking_sets: int
    undo_cycles_per_store: int
    undo_log_entries: int
    undo_log_entries_max: int
    undo_log_growth_cycles: int


class LadLlc(TypedDict, total=False):
    """Parameters of LAD-LLC.

    Attributes:
        copy_area_lines: Old lines that the area of the fall-back path holds (DEVIATIONS.md, lad-llc-overflow).
        dtx_id_bits: Bits of a DTX_ID (8, as in LAD's controllers; DEVIATIONS.md, lad-ids).
        tracking_sets: Sets of tracking structures beside each L1D; one of them is used, for one hardware thread (Table
            3).
    """

    copy_area_lines: int
    dtx_id_bits: int
    tracking_sets: int


class PInspect(TypedDict, total=False):
    """Parameters of P-INSPECT.

    Attributes:
        fence_holds_commit: Whether a store with a clean and a fence commits when it is durable. If not, it holds only
            later stores, as section V-E says (DEVIATIONS.md, pinspect-fence).
        fwd_bits: Bits of each of the two FWD filters; their room in memory is always four lines (Table VII; section
            IX-B, Figure 8).
        handler_entry_cycles: Cycles from a check that asks for a handler to its first instruction, beyond those of a
            misprediction (not in the paper; DEVIATIONS.md, pinspect-handlers).
        hash: The hash functions of the filters (Table VII; DEVIATIONS.md, pinspect-hash).
        look_up_cycles: Cycles of a look into the filters, beside the access (Table VII).
        trans_bits: Bits of the TRANS filter, whose room in memory is always one line (Table VII).
        wake_percent: Bits of the active FWD filter, in percent, that have to be set before an insert asks for the
            pointer update thread (Table VII, section IX-B).
    """

    fence_holds_commit: bool
    fwd_bits: int
    handler_entry_cycles: int
    hash: Literal["crc", "constant"]
    look_up_cycles: int
    trans_bits: int
    wake_percent: int


class Picl(TypedDict, total=False):
    """Parameters of PiCL.

    Attributes:
        bloom_bits: Bits of the Bloom filter, a power of two (DEVIATIONS.md, picl-sizes: 4096).
        bloom_hashes: Hash functions of the Bloom filter (not known; DEVIATIONS.md, picl-sizes).
        eid_bits: Bits of the epoch identifier of a line (DEVIATIONS.md, picl-sizes: 4).
        epoch_instructions: Instructions of all cores in an epoch (DEVIATIONS.md, picl-sizes: 30 million).
        hold_cycles: Cycles for which begins of transactions are held back at the end of an epoch, before open
            transactions get more time (DEVIATIONS.md, picl-epoch-boundary).
        log_bytes: Bytes of the undo log (not known; DEVIATIONS.md, picl-log).
        scan_gap_epochs: Epochs between the end of an epoch and its asynchronous cache scan; the design promises 4
            epochs (DEVIATIONS.md, picl-sizes: 3).
        scan_lines_per_cycle: Lines that a scan looks at in a cycle (not known; DEVIATIONS.md, picl-scan).
        undo_buffer_entries: Pre-images in the undo buffer (DEVIATIONS.md, picl-sizes: 2 KB).
        undo_cycles_per_store: Cycles that an abort takes for each store that it undoes (DEVIATIONS.md, picl-abort).
    """

    bloom_bits: int
    bloom_hashes: int
    eid_bits: int
    epoch_instructions: int
    hold_cycles: int
    log_bytes: int | str
    scan_gap_epochs: int
    scan_lines_per_cycle: int
    undo_buffer_entries: int
    undo_cycles_per_store: int


class Proteus(TypedDict, total=False):
    """Parameters of Proteus.

    Attributes:
        acknowledged_by: The part of the machine that acknowledges what a commit writes (DEVIATIONS.md, proteus-
            acknowledgement).
        clean_issue_cycles: Cycles from one clean of a commit to the next (DEVIATIONS.md, proteus-clean).
        flush_order: In which order flushes leave the core (DEVIATIONS.md, proteus-flush-order).
        llt_entries: Entries of the log lookup table of each core (DEVIATIONS.md, proteus-sizes).
        llt_ways: Ways of the log lookup table (DEVIATIONS.md, proteus-sizes).
        log_entries: Entries of each log: what one transaction may fill (not in the paper; DEVIATIONS.md, proteus-logs).
        log_queue: The place where log entries wait at a controller (DEVIATIONS.md, proteus-lpq).
        logq_entries: Entries of the LogQ of each core: flushes that no controller has acknowledged (DEVIATIONS.md,
            proteus-sizes).
        logs_per_core: Logs for each core: how many transactions can be open (not in the paper; DEVIATIONS.md, proteus-
            logs).
        lpq_entries: Entries of the log pending queue of each controller; with `log_queue` inside, places of the write
            pending queue that log entries may hold (DEVIATIONS.md, proteus-lpq).
        spills_in_flight: Entries that a full log pending queue writes to the log at a time, where `log_queue` is
            beside: in the write pending queue one leaves for each write that waits (not in the paper; DEVIATIONS.md,
            background-concurrency).
    """

    acknowledged_by: Literal["domain", "medium"]
    clean_issue_cycles: int
    flush_order: Literal["early", "in_order"]
    llt_entries: int
    llt_ways: int
    log_entries: int
    log_queue: Literal["beside", "inside"]
    logq_entries: int
    logs_per_core: int
    lpq_entries: int
    spills_in_flight: int


class Rtm(TypedDict, total=False):
    """Parameters of the hardware transactions.

    Attributes:
        read_set_lines: Lines that a transaction can load; 0: as many as the last level has (not in the thesis;
            DEVIATIONS.md, rtm-read-set).
    """

    read_set_lines: int


class Tc(TypedDict, total=False):
    """Parameters of TC.

    Attributes:
        coalesce: Whether stores share an entry (DEVIATIONS.md, tc-coalescing).
        commit: The event that a commit waits for (DEVIATIONS.md, tc-commit).
        copies_in_flight: Entries that the fall-back path works on at a time (not in the paper; DEVIATIONS.md,
            background-concurrency).
        entries: Entries of each core's transaction cache (section 4.4: 4 KB of 64-byte lines).
        latency_read_cycles: Cycles of a read: of a probe, and before an entry is issued (Hercules, Table 2: 40; TC,
            Table 2: 10.5 ns; DEVIATIONS.md, tc-latency).
        latency_write_cycles: Cycles of a write, after which a commit is acknowledged (Hercules, Table 2: 50; TC, Table
            2: 10.5 ns; DEVIATIONS.md, tc-latency).
        order: The committed entries of other cores that a store waits for (DEVIATIONS.md, tc-order).
        overflow_percent: Occupancy from which the fall-back path makes room, in percent (section 4.1: 90).
        pipelined: Whether a port takes an access in each cycle, or one at a time (not in the paper; DEVIATIONS.md, tc-
            ports).
        read_ports: Ports for reads of each array: an entry for a miss, or to be issued (not in the paper;
            DEVIATIONS.md, tc-ports).
        shadow_lines: Lines of the shadow area of each core (not in the paper; DEVIATIONS.md, tc-overflow).
        tx_id_bits: Bits of a TxID; identifier 0 is the normal mode, so one fewer than 2^bits are assigned (section 4.4:
            6).
        write_ports: Ports for writes of each array: entries, and the change of state at a commit (not in the paper;
            DEVIATIONS.md, tc-ports).
    """

    coalesce: Literal["none", "line"]
    commit: Literal["early", "accepted", "acknowledged"]
    copies_in_flight: int
    entries: int
    latency_read_cycles: int
    latency_write_cycles: int
    order: Literal["line", "bytes"]
    overflow_percent: int
    pipelined: bool
    read_ports: int
    shadow_lines: int
    tx_id_bits: int
    write_ports: int


DesignParameters = TypedDict(
    "DesignParameters",
    {
        "fwb": Fwb,
        "hercules": Hercules,
        "hoop": Hoop,
        "kiln": Kiln,
        "lad": Lad,
        "lad-llc": LadLlc,
        "p-inspect": PInspect,
        "p-inspect--": PInspect,
        "picl": Picl,
        "proteus": Proteus,
        "rtm": Rtm,
        "tc": Tc,
    },
    total=False,
)
"""Parameters of durability designs by name; a design that is not given has its defaults."""


class MachineArguments(TypedDict, total=False):
    """A machine.

    Attributes:
        bbb: Persist buffers, for the domain that has them.
        core: The cores.
        cores: Number of cores.
        description: One sentence.
        design: Parameters of durability designs by name; what is left out has the design's default.
        dram: Volatile memory.
        frequency_mhz: Clock of cores and caches in MHz.
        interconnect: Connections.
        l1d: First-level data cache of each core.
        l1i: First-level instruction cache of each core.
        l2: Second-level cache of each core. Without one the first levels are directly above the last one; `--set
            l2=none` takes it away.
        llc: Last-level cache.
        name: Its name.
        pauses: Pauses of cores at random, one at a time, for campaigns; not given: none come.
        place_pauses: Pauses of cores at places where threads race, for campaigns; not given: none come.
        pmem: Persistent memory.
        shared_controllers: Whether DRAM and persistent memory share controllers: queues, banks and channels serve both,
            each a range of addresses. Their sections have to agree about controllers and media.
        skew_cycles: Cycles that a core may run ahead of the others. 0 gives every step to the core whose time is the
            smallest.
        threads_per_core: Hardware threads of each core: 1, or 2 that share caches, MSHRs, functional units and issue
            width, and halve the queues while both run (DEVIATIONS.md, hardware-threads).
        timer_interrupt_cycles: Cycles between two interrupts of the timer of each core, which abort its hardware
            transaction and take no time; not given: none come.
        tlb: TLBs of each core. Without them translations cost no time (LIMITS.md); `--set tlb=none` takes them away.
    """

    bbb: PersistBufferConfig
    core: CoreConfig
    cores: int
    description: str
    design: DesignParameters
    dram: MemoryConfig
    frequency_mhz: int
    interconnect: InterconnectConfig
    l1d: CacheConfig
    l1i: CacheConfig
    l2: CacheConfig | None
    llc: CacheConfig
    name: str
    pauses: PauseConfig | None
    place_pauses: PlacePauseConfig | None
    pmem: MemoryConfig
    shared_controllers: bool
    skew_cycles: int
    threads_per_core: int
    timer_interrupt_cycles: int | None
    tlb: TlbConfig | None
