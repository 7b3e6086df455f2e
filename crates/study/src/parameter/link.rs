//! The parameters of links.

use lastbyte_link::{Direction, Link, Loss, Qdisc, Trace, format_duration, parse_duration};

use super::spec::{
    Access, Caption, Choice, CommandLine, Lists, Measures, Place, Reading, Scope, Spec, Value, read,
};
use crate::trace::{NO_TRACE, load_trace};
use crate::{Cell, StudyFolder, load_distribution};

pub(super) static NAME: Spec = Spec {
    name: "link",
    scope: Scope::Cell,
    measures: Measures::Both,
    transport: None,
    title: "link",
    caption: Caption::Unusual(|cell| cell.link_name.clone().unwrap_or_default()),
    reading: Reading::Name,
    place: Place::LinkName,
    command_line: None,
    column: None,
};

pub(super) static RTT: Spec = Spec {
    name: "rtt",
    scope: Scope::Connection,
    measures: Measures::Both,
    transport: None,
    title: "RTT, ms",
    caption: Caption::Always(round_trip),
    reading: Reading::Text,
    place: Place::Link(Access {
        get: |link| Value::Time(link.rtt()),
        set: |link, text, _| {
            let rtt = parse_duration(text)?;
            let halves = Link::symmetric(rtt, Direction::default());
            link.forward.delay = halves.forward.delay;
            link.backward.delay = halves.backward.delay;
            Ok(())
        },
    }),
    command_line: Some(CommandLine {
        value_name: "TIME",
        help: "Round-trip time, half of it in each direction. Lists make a grid: 35ms,70ms; so they do for nearly all options of networks, hosts and transfers",
        choice: Choice::Usual("35ms"),
        lists: Lists::Taken,
    }),
    column: None,
};

pub(super) static RATE: Spec = Spec {
    name: "rate",
    scope: Scope::Connection,
    measures: Measures::Both,
    transport: None,
    title: "rate, Mbit/s",
    caption: Caption::Always(|cell| both(cell, rate)),
    reading: Reading::Ways,
    place: Place::Direction(Access {
        get: |direction| Value::Rate(direction.rate),
        set: |direction, text, _| match text {
            "unlimited" => {
                direction.rate = None;
                Ok(())
            }
            _ => {
                direction.rate = Some(text.parse()?);
                Ok(())
            }
        },
    }),
    command_line: Some(CommandLine {
        value_name: "RATE",
        help: "Rate of each direction, DOWN/UP (50mbit/10mbit: down is from server to client), or unlimited",
        choice: Choice::Usual("1gbit"),
        lists: Lists::Taken,
    }),
    column: None,
};

pub(super) static TRACE: Spec = Spec {
    name: "trace",
    scope: Scope::Cell,
    measures: Measures::Both,
    transport: None,
    title: "rate trace",
    caption: Caption::Unusual(|cell| {
        let Link { forward, backward } = &cell.link;
        match [trace(forward), trace(backward)] {
            [up, down] if up == down => format!("trace {up}"),
            [up, down] => format!("trace {up} up and {down} down"),
        }
    }),
    reading: Reading::Files,
    place: Place::Direction(Access {
        get: |direction| Value::Text(trace(direction)),
        set: |direction, text, folder: &StudyFolder| {
            direction.trace = load_trace(text, folder)?;
            if direction.trace.is_some() {
                direction.rate = None;
            }
            Ok(())
        },
    }),
    command_line: Some(CommandLine {
        value_name: "FILE",
        help: "When the link carries how much, in place of --rate: a file of Mahimahi's, as `lastbyte trace` makes them, of both directions or DOWN:UP, which begins again at its end, or not (\"FILE once\"); or none",
        choice: Choice::Usual(NO_TRACE),
        // The name of a file may have a comma.
        lists: Lists::Refused,
    }),
    column: None,
};

pub(super) static LOSS: Spec = Spec {
    name: "loss",
    scope: Scope::Connection,
    measures: Measures::Both,
    transport: None,
    title: "loss, %",
    caption: Caption::Always(|cell| format!("loss {}", both(cell, |way| way.loss.to_string()))),
    reading: Reading::Text,
    place: Place::Direction(Access {
        get: |direction| Value::Loss(direction.loss),
        set: |direction, text, _| read::<Loss>(&mut direction.loss, text),
    }),
    command_line: Some(CommandLine {
        value_name: "LOSS",
        help: "Share of packets that each direction loses; in bursts by their mean length, \"5% in bursts of 4\", or with gemodel:P[/R[/1-H[/1-K]]], as tc has it: gemodel:1%/10%",
        choice: Choice::Usual("0%"),
        lists: Lists::Taken,
    }),
    column: None,
};

pub(super) static JITTER: Spec = Spec {
    name: "jitter",
    scope: Scope::Connection,
    measures: Measures::Both,
    transport: None,
    title: "jitter, ms",
    caption: Caption::Unusual(|cell| format!("jitter {}", both(cell, jitter))),
    reading: Reading::Text,
    place: Place::Direction(Access {
        get: |direction| Value::Time(direction.jitter),
        set: |direction, text, _| {
            direction.jitter = parse_duration(text)?;
            Ok(())
        },
    }),
    command_line: Some(CommandLine {
        value_name: "TIME",
        help: "Jitter of each direction",
        choice: Choice::Usual("0ms"),
        lists: Lists::Taken,
    }),
    column: None,
};

pub(super) static JITTER_DISTRIBUTION: Spec = Spec {
    name: "jitter_distribution",
    scope: Scope::Cell,
    measures: Measures::Both,
    transport: None,
    title: "distribution of jitter",
    // Jitter says it.
    caption: Caption::Never,
    reading: Reading::Name,
    place: Place::Direction(Access {
        get: |direction| Value::Text(direction.distribution.to_string()),
        set: |direction, text, folder: &StudyFolder| {
            direction.distribution = load_distribution(text, folder)?;
            Ok(())
        },
    }),
    command_line: Some(CommandLine {
        value_name: "NAME|FILE",
        help: "How jitter is distributed: uniform (within +-TIME), normal (TIME is the deviation), pareto, paretonormal, or as in a file: tc's FILE.dist, or measured delays, one on a line, in FILE.csv or FILE.txt",
        choice: Choice::Usual("normal"),
        // The name of a file may have a comma.
        lists: Lists::Refused,
    }),
    column: None,
};

pub(super) static JITTER_ORDER: Spec = Spec {
    name: "jitter_order",
    scope: Scope::Cell,
    measures: Measures::Both,
    transport: None,
    title: "order under jitter",
    caption: Caption::Unusual(|cell| format!("order {}", both(cell, |way| way.order.to_string()))),
    reading: Reading::Text,
    place: Place::Direction(Access {
        get: |direction| Value::Text(direction.order.to_string()),
        set: |direction, text, _| read(&mut direction.order, text),
    }),
    command_line: Some(CommandLine {
        value_name: "ORDER",
        help: "Whether packets without a rate limit overtake those that jitter delays for longer: free, as netem has it, or kept. Behind a rate or a trace, none overtakes another",
        choice: Choice::Usual("free"),
        lists: Lists::Taken,
    }),
    column: None,
};

pub(super) static QUEUE: Spec = Spec {
    name: "queue",
    scope: Scope::Connection,
    measures: Measures::Both,
    transport: None,
    title: "queue, packets",
    caption: Caption::Unusual(|cell| format!("queue {}", both(cell, |way| way.queue.to_string()))),
    reading: Reading::Whole(1..=u32::MAX),
    place: Place::Direction(Access {
        get: |direction| Value::Count(direction.queue),
        set: |direction, text, _| read(&mut direction.queue, text),
    }),
    command_line: Some(CommandLine {
        value_name: "PACKETS",
        help: "Packets that each direction holds, those under way included",
        choice: Choice::Usual("1000"),
        lists: Lists::Taken,
    }),
    column: None,
};

pub(super) static QDISC: Spec = Spec {
    name: "qdisc",
    scope: Scope::Cell,
    measures: Measures::Both,
    transport: None,
    title: "queue discipline",
    caption: Caption::Unusual(|cell| both(cell, qdisc)),
    reading: Reading::Text,
    place: Place::Direction(Access {
        get: |direction| Value::Text(qdisc(direction)),
        set: |direction, text, _| {
            direction.qdisc = match text {
                NO_QDISC => None,
                _ => Some(text.parse()?),
            };
            Ok(())
        },
    }),
    command_line: Some(CommandLine {
        value_name: "QDISC",
        help: "How packets wait for the rate, in place of --queue: fifo, codel, fq_codel, pie, red or dualpi2, with settings behind it as tc has them (\"codel target 10ms\", \"fifo limit 64KiB\"), or none",
        choice: Choice::Usual(NO_QDISC),
        lists: Lists::Taken,
    }),
    column: None,
};

const NO_QDISC: &str = "none";

fn qdisc(direction: &Direction) -> String {
    let qdisc = direction.qdisc.as_ref();
    qdisc.map_or(NO_QDISC.to_owned(), Qdisc::to_string)
}

/// A text of both directions, or one of each.
fn both(cell: &Cell, text: fn(&Direction) -> String) -> String {
    match (text(&cell.link.forward), text(&cell.link.backward)) {
        (up, down) if up == down => up,
        (up, down) => format!("{up} up and {down} down"),
    }
}

fn round_trip(cell: &Cell) -> String {
    let (up, down) = (cell.link.forward.delay, cell.link.backward.delay);
    let rtt = format_duration(cell.link.rtt());
    // Half of an odd number of nanoseconds is not a whole one.
    if up.abs_diff(down).as_nanos() <= 1 {
        return format!("RTT {rtt}");
    }
    let (up, down) = (format_duration(up), format_duration(down));
    format!("RTT {rtt} ({up} up and {down} down)")
}

fn trace(direction: &Direction) -> String {
    let trace = direction.trace.as_ref();
    trace.map_or(NO_TRACE.to_owned(), Trace::to_string)
}

/// A rate of both directions, or `DOWN/UP`.
fn rate(direction: &Direction) -> String {
    if direction.trace.is_some() {
        return "rate of a trace".to_owned();
    }
    let rate = direction.rate;
    rate.map_or("no rate limit".into(), |rate| rate.to_string())
}

fn jitter(direction: &Direction) -> String {
    let jitter = format_duration(direction.jitter);
    if direction.jitter.is_zero() {
        jitter
    } else {
        format!("{jitter} {}", direction.distribution)
    }
}
