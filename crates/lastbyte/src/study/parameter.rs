//! What can change from cell to cell, and the cells that have it one way or another.

use std::time::Duration;

use lastbyte_link::{Bytes, Direction, Loss, Rate, format_duration, parse_duration};

use super::named::named;
use super::{Cell, Congestion, Gso, Preset, Setting};

/// What can change from cell to cell.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Parameter {
    /// The name of the link.
    Link,
    /// Round-trip time.
    Rtt,
    /// Rate limit.
    Rate,
    /// Loss.
    Loss,
    /// Jitter.
    Jitter,
    /// How jitter is distributed.
    JitterDistribution,
    /// Packets that the link holds.
    Queue,
    /// All that goes with a name.
    Preset,
    /// What the link sees of super-packets.
    Gso,
    /// The longest IP packet.
    Mtu,
    /// TCP timestamps.
    Timestamps,
    /// TCP's buffers.
    Buffers,
    /// Who cuts super-packets up.
    Tso,
    /// How the server writes.
    Writes,
    /// Congestion control.
    Congestion,
    /// The client's initial congestion window.
    ClientInitcwnd,
    /// The server's initial congestion window.
    Initcwnd,
    /// Requests on a connection.
    Requests,
    /// From a response to the next request.
    Think,
    /// The body of each request.
    Upload,
    /// Response payload.
    Data,
}

// In the order in which they are told.
named!(Parameter, "parameter", {
    Link => "link",
    Rtt => "rtt",
    Rate => "rate",
    Loss => "loss",
    Jitter => "jitter",
    JitterDistribution => "jitter_distribution",
    Queue => "queue",
    Preset => "preset",
    Gso => "gso",
    Mtu => "mtu",
    Timestamps => "timestamps",
    Buffers => "buffers",
    Tso => "tso",
    Writes => "writes",
    Congestion => "congestion",
    ClientInitcwnd => "client_initcwnd",
    Initcwnd => "initcwnd",
    Requests => "requests",
    Think => "think",
    Upload => "upload",
    Data => "data",
});

impl Parameter {
    /// If it is one of hosts, all that is known of it.
    pub fn of_hosts(self) -> Option<&'static Setting> {
        Setting::find(self.name())
    }

    /// How a cell has it, as a study would say it.
    pub fn of(self, cell: &Cell) -> String {
        let both = |text: fn(&Direction) -> String| {
            let (forward, backward) = (text(&cell.link.forward), text(&cell.link.backward));
            if forward == backward {
                forward
            } else {
                format!("{forward} up, {backward} down")
            }
        };
        match self {
            Parameter::Link => cell.link_name.clone().unwrap_or_default(),
            Parameter::Rtt => format_duration(cell.link.rtt()),
            Parameter::Rate => {
                both(|way| way.rate.map_or("unlimited".into(), |rate| rate.to_string()))
            }
            Parameter::Loss => both(|way| way.loss.to_string()),
            Parameter::Jitter => both(|way| format_duration(way.jitter)),
            Parameter::JitterDistribution => both(|way| way.distribution.to_string()),
            Parameter::Queue => both(|way| way.queue.to_string()),
            Parameter::Preset => cell.preset.to_string(),
            Parameter::Gso => cell.gso.to_string(),
            Parameter::Congestion => cell.congestion.to_string(),
            Parameter::ClientInitcwnd => cell.client_initcwnd.to_string(),
            Parameter::Initcwnd => cell.initcwnd.to_string(),
            Parameter::Requests => cell.requests.to_string(),
            Parameter::Think => format_duration(cell.think),
            Parameter::Upload => cell.upload.to_string(),
            Parameter::Data => cell.data.to_string(),
            Parameter::Mtu
            | Parameter::Timestamps
            | Parameter::Buffers
            | Parameter::Tso
            | Parameter::Writes => {
                (self.of_hosts()).map_or(String::new(), |setting| (setting.of)(&cell.hosts))
            }
        }
    }

    /// Where a cell stands on an axis: milliseconds, Mbit/s, percent, KiB, or a count. `None` for what
    /// is no number, or differs between the directions.
    pub fn number(self, cell: &Cell) -> Option<f64> {
        const KIB: f64 = 1024.0;
        let (forward, backward) = (&cell.link.forward, &cell.link.backward);
        let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
        let alike = |number: fn(&Direction) -> Option<f64>| {
            let value = number(forward)?;
            (number(backward) == Some(value)).then_some(value)
        };
        let bytes = |Bytes(bytes)| bytes as f64 / KIB;
        match self {
            Parameter::Rtt => Some(milliseconds(cell.link.rtt())),
            Parameter::Rate => alike(|way| Some(way.rate?.bits_per_second() as f64 / 1e6)),
            Parameter::Loss => alike(|way| Some(way.loss.mean().fraction() * 100.0)),
            Parameter::Jitter => alike(|way| Some(way.jitter.as_secs_f64() * 1e3)),
            Parameter::Queue => alike(|way| Some(f64::from(way.queue))),
            Parameter::ClientInitcwnd => Some(f64::from(cell.client_initcwnd)),
            Parameter::Initcwnd => Some(f64::from(cell.initcwnd)),
            Parameter::Requests => Some(f64::from(cell.requests)),
            Parameter::Think => Some(milliseconds(cell.think)),
            Parameter::Upload => Some(bytes(cell.upload)),
            Parameter::Data => Some(bytes(cell.data)),
            Parameter::Mtu
            | Parameter::Timestamps
            | Parameter::Buffers
            | Parameter::Tso
            | Parameter::Writes => self
                .of_hosts()
                .and_then(|setting| (setting.number)(&cell.hosts)),
            Parameter::Link
            | Parameter::JitterDistribution
            | Parameter::Preset
            | Parameter::Gso
            | Parameter::Congestion => None,
        }
    }

    /// What an axis of it is called, with its unit.
    pub fn title(self) -> &'static str {
        match self {
            Parameter::Link => "link",
            Parameter::Rtt => "RTT, ms",
            Parameter::Rate => "rate, Mbit/s",
            Parameter::Loss => "loss, %",
            Parameter::Jitter => "jitter, ms",
            Parameter::JitterDistribution => "distribution of jitter",
            Parameter::Queue => "queue, packets",
            Parameter::Preset => "preset",
            Parameter::Gso => "GSO",
            Parameter::Congestion => "congestion control",
            Parameter::ClientInitcwnd => "client's initial window, segments",
            Parameter::Initcwnd => "initial window, segments",
            Parameter::Requests => "requests",
            Parameter::Think => "time to think, ms",
            Parameter::Upload => "upload, KiB",
            Parameter::Data => "data, KiB",
            Parameter::Mtu
            | Parameter::Timestamps
            | Parameter::Buffers
            | Parameter::Tso
            | Parameter::Writes => self.of_hosts().map_or("", |setting| setting.title),
        }
    }

    /// How a cell has it, in a sentence: `RTT 35ms`.
    pub fn told(self, cell: &Cell) -> String {
        let word = match self {
            Parameter::Link | Parameter::Rate | Parameter::Data | Parameter::Congestion => "",
            Parameter::Rtt => "RTT ",
            Parameter::Loss => "loss ",
            Parameter::Jitter => "jitter ",
            Parameter::JitterDistribution => "jitter distribution ",
            Parameter::Queue => "queue ",
            Parameter::Preset => "preset ",
            Parameter::Gso => "gso ",
            Parameter::ClientInitcwnd => "client initcwnd ",
            Parameter::Initcwnd => "initcwnd ",
            Parameter::Requests => "requests ",
            Parameter::Think => "think ",
            Parameter::Upload => "upload ",
            Parameter::Mtu
            | Parameter::Timestamps
            | Parameter::Buffers
            | Parameter::Tso
            | Parameter::Writes => return format!("{self} {}", self.of(cell)),
        };
        format!("{word}{}", self.of(cell))
    }

    /// The values that cells have of it, each once, in their order.
    pub fn values(self, cells: &[&Cell]) -> Vec<String> {
        let mut values: Vec<String> = Vec::new();
        for cell in cells {
            let value = self.of(cell);
            if !values.contains(&value) {
                values.push(value);
            }
        }
        values
    }

    /// `text` as [`Parameter::of`] would write it.
    pub(super) fn canonical(self, text: &str) -> Result<String, String> {
        fn written<T: std::str::FromStr<Err: ToString> + ToString>(
            text: &str,
        ) -> Result<String, String> {
            let value: T = text.parse().map_err(|error: T::Err| error.to_string())?;
            Ok(value.to_string())
        }
        let duration = || {
            let time = parse_duration(text).map_err(|error| error.to_string())?;
            Ok(format_duration(time))
        };
        let count = || match text.parse::<u32>() {
            Ok(count) => Ok(count.to_string()),
            Err(_) => Err(format!("{text:?} is no whole number: write one such as 10")),
        };
        match self {
            Parameter::Link | Parameter::JitterDistribution => Ok(text.to_owned()),
            Parameter::Rtt | Parameter::Jitter | Parameter::Think => duration(),
            Parameter::Rate if text == "unlimited" => Ok(text.to_owned()),
            Parameter::Rate => written::<Rate>(text),
            Parameter::Loss => written::<Loss>(text),
            Parameter::Preset => written::<Preset>(text),
            Parameter::Gso => written::<Gso>(text),
            Parameter::Congestion => written::<Congestion>(text),
            Parameter::Queue
            | Parameter::ClientInitcwnd
            | Parameter::Initcwnd
            | Parameter::Requests => count(),
            Parameter::Upload | Parameter::Data => written::<Bytes>(text),
            Parameter::Mtu
            | Parameter::Timestamps
            | Parameter::Buffers
            | Parameter::Tso
            | Parameter::Writes => (self.of_hosts())
                .map_or_else(|| Ok(text.to_owned()), |setting| setting.canonical(text)),
        }
    }
}

/// Some cells: those that have what one of its alternatives asks for. Without alternatives, all.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Filter(pub(super) Vec<Alternative>);

/// Parameters with the values that each may have, written as [`Parameter::of`] writes them.
pub(super) type Alternative = Vec<(Parameter, Vec<String>)>;

impl Filter {
    /// The cells that have all of these.
    pub fn of(values: Vec<(Parameter, Vec<String>)>) -> Filter {
        Filter(vec![values])
    }

    /// Whether a cell is one of them.
    pub fn has(&self, cell: &Cell) -> bool {
        let fits = |alternative: &Alternative| {
            let mut all = alternative.iter();
            all.all(|(parameter, values)| values.contains(&parameter.of(cell)))
        };
        self.0.is_empty() || self.0.iter().any(fits)
    }

    /// Whether it says anything of a parameter.
    pub fn names(&self, parameter: Parameter) -> bool {
        let mut named = self.0.iter().flatten().map(|(named, _)| *named);
        named.any(|named| named == parameter)
    }
}

/// The parameters that differ among cells, in the order in which they are told. The name of a link
/// counts only where nothing else tells it, and what the link sees of super-packets only where it is
/// another thing than the preset has.
pub fn varying(cells: &[&Cell]) -> Vec<Parameter> {
    let differs = |parameter: &Parameter| parameter.values(cells).len() > 1;
    // What the preset says of it is not told besides.
    let goes_with_preset = |parameter: &Parameter| match (parameter, parameter.of_hosts()) {
        (Parameter::Gso, _) => cells.iter().all(|cell| cell.gso == cell.preset.gso()),
        (_, Some(setting)) => cells.iter().all(|cell| setting.is_usual(cell)),
        _ => false,
    };
    let (links, others): (Vec<_>, Vec<_>) = Parameter::ALL
        .into_iter()
        .filter(|parameter| !goes_with_preset(parameter))
        .filter(differs)
        .partition(|parameter| *parameter == Parameter::Link);
    let of_link = [
        Parameter::Rtt,
        Parameter::Rate,
        Parameter::Loss,
        Parameter::Jitter,
        Parameter::Queue,
    ];
    if others.iter().any(|other| of_link.contains(other)) {
        others
    } else {
        links.into_iter().chain(others).collect()
    }
}
