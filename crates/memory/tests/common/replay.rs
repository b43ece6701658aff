//! Replays traces of requests against a memory. A trace has a line for each request, in the order of arrival: the clock, `R` or
//! `W`, and the number of the line. Requests enter in order: one for which its queue has no room keeps those after it outside.

use durasim_contract::Origin;
use durasim_memory::{Memory, MemoryConfig, Step, Write, WriteToken};
use durasim_types::{Cause, LINE_BYTES, LineAddr, Pages, PhysAddr, Picos};
use std::error::Error;

/// Goes on to `until_ps`, or to the acceptance of a write; when that was, and when the last write was done.
fn settle(memory: &mut Memory, until_ps: Picos, wanted: Option<u64>) -> (Option<Picos>, Picos) {
    let mut written_ps = 0;
    while let Some(step) = memory.step(until_ps) {
        match step {
            Step::Accepted { at_ps, token: Some(token), .. } if Some(token.number) == wanted => {
                return (Some(at_ps), written_ps);
            }
            Step::Written { at_ps, .. } => written_ps = at_ps,
            _ => {}
        }
    }
    (None, written_ps)
}

/// The measurements of a replay.
pub struct Replayed {
    /// Requests in the trace.
    pub requests: u64,
    /// Reads among them.
    pub reads: u64,
    /// Mean of the times from arrival to data, in picoseconds.
    pub read_mean_ps: Picos,
    /// Their 95th percentile.
    pub read_p95_ps: Picos,
    /// Bytes that were read and written in a microsecond: MB/s.
    pub mb_per_s: u64,
}

/// Replays a trace with this clock, in picoseconds.
///
/// # Errors
/// A line of the trace that is no request.
pub fn replay(config: &MemoryConfig, clock_ps: Picos, trace: &str) -> Result<Replayed, Box<dyn Error>> {
    let mut memory = Memory::new(config, Pages::new(PhysAddr(0), config.capacity_mib << 20));
    let (mut entered_ps, mut end_ps) = (0, 0);
    let (mut requests, mut latencies_ps) = (0u64, Vec::new());
    for request in trace.lines() {
        let fields: Vec<&str> = request.split(' ').collect();
        let [clock, kind, line] = fields[..] else { return Err(format!("'{request}' is no request").into()) };
        let arrived_ps = clock.parse::<Picos>()? * clock_ps;
        let line = LineAddr(line.parse()?);
        let mut at_ps = arrived_ps.max(entered_ps);
        end_ps = end_ps.max(settle(&mut memory, at_ps, None).1);
        if kind == "W" {
            let mut write = Write::line(line, [0; LINE_BYTES as usize], Cause::Data);
            write.token = Some(WriteToken::new(requests, Origin::Llc));
            if !memory.submit(write, at_ps) {
                let (accepted_ps, written_ps) = settle(&mut memory, Picos::MAX, Some(requests));
                at_ps = accepted_ps.ok_or("a write is never accepted")?;
                end_ps = end_ps.max(written_ps);
            }
        } else {
            let read = memory.read(line, at_ps);
            latencies_ps.push(read.done_ps - arrived_ps);
            (at_ps, end_ps) = (read.queued_ps, end_ps.max(read.done_ps));
        }
        entered_ps = at_ps;
        requests += 1;
    }
    end_ps = end_ps.max(settle(&mut memory, Picos::MAX, None).1);
    latencies_ps.sort_unstable();
    let reads = latencies_ps.len() as u64;
    Ok(Replayed {
        requests,
        reads,
        read_mean_ps: latencies_ps.iter().sum::<Picos>().checked_div(reads).unwrap_or(0),
        read_p95_ps: latencies_ps.get(latencies_ps.len() * 95 / 100).copied().unwrap_or(0),
        mb_per_s: requests * LINE_BYTES * 1_000_000 / end_ps.max(1),
    })
}
