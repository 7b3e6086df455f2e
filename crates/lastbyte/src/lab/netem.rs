//! A direction of a link in the words of Linux's `sch_netem`: the `TCA_OPTIONS` of its
//! queueing discipline (linux/pkt_sched.h).

use std::time::Duration;

use lastbyte_link::{Direction, Loss, Order, Qdisc, Rate};

const TCA_NETEM_DELAY_DIST: u16 = 2;
const TCA_NETEM_LOSS: u16 = 5;
const TCA_NETEM_RATE: u16 = 6;
const TCA_NETEM_RATE64: u16 = 8;
const TCA_NETEM_LATENCY64: u16 = 10;
const TCA_NETEM_JITTER64: u16 = 11;
const TCA_NETEM_PRNG_SEED: u16 = 14;
const NETEM_LOSS_GE: u16 = 2;

/// The longest jitter that netem keeps as it is (`INT_MAX` nanoseconds).
const MAX_JITTER: Duration = Duration::from_nanos(i32::MAX as u64);

/// Whether the table of delays goes along. netem keeps the one that it has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Table {
    Send,
    Keep,
}

/// netem can't do what a link says.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetemError {
    /// It counts whole bytes.
    #[error(
        "netem can't limit a rate to {0}bit: use a multiple of 8 bits a second, or emulation = \"link\""
    )]
    Rate(u64),
    /// It cuts longer ones.
    #[error("netem can't do a jitter of {0:?}: use 2.147s or less, or emulation = \"link\"")]
    Jitter(Duration),
    /// It has a rate that stays.
    #[error("netem has no rate traces ({0:?}): use emulation = \"link\"")]
    Trace(String),
    /// It has one queue, in which packets are delayed, too.
    #[error("netem has no queue disciplines ({0}): use emulation = \"link\"")]
    Qdisc(Qdisc),
    /// Without a rate, it reorders.
    #[error(
        "netem's jitter has packets overtake each other where nothing limits the rate: leave jitter_order out, limit the \
         rate, or use emulation = \"link\""
    )]
    Order,
    /// It holds times as signed nanoseconds.
    #[error("netem can't do a delay of {0:?}: use 292 years or less")]
    Delay(Duration),
}

/// Whether what becomes of a packet is by chance.
pub(crate) fn draws(direction: &Direction) -> bool {
    direction.loss != Loss::NONE || !direction.jitter.is_zero()
}

/// The options for one direction. `seed` is where netem's own randomness starts from now on; where nothing is drawn,
/// all are the same.
pub(crate) fn options(
    direction: &Direction,
    seed: u64,
    table: Table,
) -> Result<Vec<u8>, NetemError> {
    let Direction {
        delay,
        jitter,
        rate,
        queue,
        ..
    } = *direction;
    if let Some(trace) = &direction.trace {
        return Err(NetemError::Trace(trace.name().to_owned()));
    }
    if let Some(qdisc) = direction.qdisc {
        return Err(NetemError::Qdisc(qdisc));
    }
    if direction.order == Order::Kept && rate.is_none() && !jitter.is_zero() {
        return Err(NetemError::Order);
    }
    if jitter > MAX_JITTER {
        return Err(NetemError::Jitter(jitter));
    }
    let delay_ns = i64::try_from(delay.as_nanos()).map_err(|_| NetemError::Delay(delay))?;
    let jitter_ns = jitter.as_nanos() as i64;

    // struct tc_netem_qopt: latency, limit, loss, gap, duplicate, jitter. Both times follow
    // below, in nanoseconds.
    let mut options = Vec::new();
    let loss = direction.loss.in_tc();
    let random = match loss {
        Loss::Random(loss) => loss.to_netem(),
        Loss::Bursts { .. } | Loss::GilbertElliott { .. } => 0,
    };
    for number in [0, queue, random, 0, 0, 0] {
        options.extend_from_slice(&number.to_ne_bytes());
    }
    attribute(&mut options, TCA_NETEM_LATENCY64, &delay_ns.to_ne_bytes());
    attribute(&mut options, TCA_NETEM_JITTER64, &jitter_ns.to_ne_bytes());
    // Without a word, netem keeps the rate that it has.
    let bits = rate.map_or(0, Rate::bits_per_second);
    if rate.is_some() || table == Table::Keep {
        if bits % 8 != 0 {
            return Err(NetemError::Rate(bits));
        }
        let bytes = bits / 8;
        // struct tc_netem_rate: rate, packet_overhead, cell_size, cell_overhead.
        let mut limit = [0; 16];
        let capped = u32::try_from(bytes).unwrap_or(u32::MAX);
        limit[..4].copy_from_slice(&capped.to_ne_bytes());
        if u64::from(capped) != bytes {
            attribute(&mut options, TCA_NETEM_RATE64, &bytes.to_ne_bytes());
        }
        attribute(&mut options, TCA_NETEM_RATE, &limit);
    }
    if table == Table::Send
        && let Some(quantiles) = direction.distribution.table()
    {
        let bytes: Vec<u8> = quantiles.iter().flat_map(|q| q.to_ne_bytes()).collect();
        attribute(&mut options, TCA_NETEM_DELAY_DIST, &bytes);
    }
    if let Loss::GilbertElliott {
        to_bad,
        to_good,
        loss_in_bad,
        loss_in_good,
    } = loss
    {
        // struct tc_netem_gemodel: p, r, h, k1.
        let passed_in_bad = u32::MAX - loss_in_bad.to_netem();
        let model = [
            to_bad.to_netem(),
            to_good.to_netem(),
            passed_in_bad,
            loss_in_good.to_netem(),
        ];
        let mut nested = Vec::new();
        attribute(
            &mut nested,
            NETEM_LOSS_GE,
            &model.map(u32::to_ne_bytes).concat(),
        );
        attribute(&mut options, TCA_NETEM_LOSS, &nested);
    }
    let seed = if draws(direction) { seed } else { 0 };
    attribute(&mut options, TCA_NETEM_PRNG_SEED, &seed.to_ne_bytes());
    Ok(options)
}

/// Appends a netlink attribute: length with its header, kind, payload, padding to 4 bytes.
fn attribute(options: &mut Vec<u8>, kind: u16, payload: &[u8]) {
    const HEADER: usize = 4;
    let length = (HEADER + payload.len()) as u16;
    options.extend_from_slice(&length.to_ne_bytes());
    options.extend_from_slice(&kind.to_ne_bytes());
    options.extend_from_slice(payload);
    options.resize(options.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests;
