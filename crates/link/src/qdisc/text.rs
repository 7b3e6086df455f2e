//! Queues as they are written.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use super::{Codel, DualPi2, Ecn, FqCodel, Limit, Pie, Qdisc, Red};
use crate::{Bytes, UnitError, UnknownName, format_duration, nearest, parse_duration};

const KIND: &str = "queue discipline";
const FIFO: &str = "fifo";
const CODEL: &str = "codel";
const FQ_CODEL: &str = "fq_codel";
const PIE: &str = "pie";
const RED: &str = "red";
const DUALPI2: &str = "dualpi2";
const ALL: [&str; 6] = [FIFO, CODEL, FQ_CODEL, PIE, RED, DUALPI2];

impl FromStr for Qdisc {
    type Err = UnitError;

    fn from_str(text: &str) -> Result<Qdisc, UnitError> {
        let mut words = text.split_ascii_whitespace();
        let mut words = Words {
            text,
            name: words.next().unwrap_or_default(),
            rest: words.collect(),
        };
        let qdisc = match words.name {
            FIFO => {
                const PACKETS: u32 = 1000;
                let mut limit = Limit::Packets(PACKETS);
                words.read(&mut [("limit", &mut |text| set(&mut limit, limit_of(text)))])?;
                Qdisc::Fifo(limit)
            }
            CODEL => {
                let mut codel = Codel::default();
                words.codel(&mut codel, None)?;
                Qdisc::Codel(codel)
            }
            FQ_CODEL => {
                let mut fq = FqCodel::default();
                words.codel(&mut fq.codel, Some(&mut fq.quantum))?;
                Qdisc::FqCodel(fq)
            }
            PIE => {
                let mut pie = Pie::default();
                words.ecn(&mut pie.ecn);
                words.read(&mut [
                    ("limit", &mut |text| set(&mut pie.limit, packets(text))),
                    ("target", &mut |text| set(&mut pie.target, duration(text))),
                    ("tupdate", &mut |text| set(&mut pie.tupdate, duration(text))),
                    ("alpha", &mut |text| set(&mut pie.alpha, gain(text))),
                    ("beta", &mut |text| set(&mut pie.beta, gain(text))),
                ])?;
                Qdisc::Pie(pie)
            }
            RED => Qdisc::Red(words.red()?),
            DUALPI2 => {
                let mut dual = DualPi2::default();
                words.read(&mut [
                    ("limit", &mut |text| set(&mut dual.limit, packets(text))),
                    ("target", &mut |text| set(&mut dual.target, duration(text))),
                    ("tupdate", &mut |text| {
                        set(&mut dual.tupdate, duration(text))
                    }),
                    ("step_thresh", &mut |text| {
                        set(&mut dual.step_thresh, duration(text))
                    }),
                    ("coupling_factor", &mut |text| {
                        set(&mut dual.coupling_factor, coupling(text))
                    }),
                ])?;
                Qdisc::DualPi2(dual)
            }
            other => return Err(UnknownName::new(KIND, other, ALL).into()),
        };
        Ok(qdisc)
    }
}

/// What stands behind the name of a queue.
struct Words<'t> {
    text: &'t str,
    name: &'t str,
    rest: Vec<&'t str>,
}

type Setting<'s> = (
    &'static str,
    &'s mut dyn FnMut(&str) -> Result<(), UnitError>,
);

impl Words<'_> {
    /// Takes `ecn` and `noecn` out.
    fn ecn(&mut self, ecn: &mut Ecn) {
        self.rest.retain(|word| {
            match *word {
                "ecn" => *ecn = Ecn::On,
                "noecn" => *ecn = Ecn::Off,
                _ => return true,
            }
            false
        });
    }

    fn codel(&mut self, codel: &mut Codel, quantum: Option<&mut u32>) -> Result<(), UnitError> {
        self.ecn(&mut codel.ecn);
        let Codel {
            limit,
            target,
            interval,
            ecn: _,
        } = codel;
        let mut set_limit = |text: &str| set(limit, packets(text));
        let mut set_target = |text: &str| set(target, duration(text));
        let mut set_interval = |text: &str| set(interval, duration(text));
        let mut all: Vec<Setting<'_>> = vec![
            ("limit", &mut set_limit),
            ("target", &mut set_target),
            ("interval", &mut set_interval),
        ];
        let mut set_quantum;
        if let Some(quantum) = quantum {
            set_quantum = |text: &str| set(quantum, self::quantum(text));
            all.push(("quantum", &mut set_quantum));
        }
        self.read(&mut all)
    }

    fn red(&mut self) -> Result<Red, UnitError> {
        let mut ecn = Ecn::Off;
        self.ecn(&mut ecn);
        // Thresholds are parts of the limit, wherever that stands.
        let limit = (self.rest.chunks(2)).find_map(|pair| match pair {
            ["limit", limit] => Some(*limit),
            _ => None,
        });
        let limit = limit.map_or(Ok(Red::USUAL), red_bytes)?;
        let mut red = Red {
            ecn,
            ..Red::of(limit)
        };
        self.read(&mut [
            ("limit", &mut |_| Ok(())),
            ("min", &mut |text| set(&mut red.min, red_bytes(text))),
            ("max", &mut |text| set(&mut red.max, red_bytes(text))),
            ("probability", &mut |text| {
                set(&mut red.probability, text.parse())
            }),
            ("avpkt", &mut |text| set(&mut red.avpkt, red_bytes(text))),
        ])?;
        if red.min >= red.max || red.max > red.limit {
            let Red {
                min, max, limit, ..
            } = red;
            let hint =
                format!("can't be: {min} (min), {max} (max) and {limit} (limit) have to grow");
            return Err(self.wrong(hint));
        }
        Ok(red)
    }

    fn read(&self, settings: &mut [Setting<'_>]) -> Result<(), UnitError> {
        for pair in self.rest.chunks(2) {
            let (name, value) = match *pair {
                [name, value] => (name, Some(value)),
                [name] => (name, None),
                _ => return Ok(()),
            };
            let names: Vec<_> = settings.iter().map(|(name, _)| *name).collect();
            let Some((_, set)) = settings.iter_mut().find(|(known, _)| *known == name) else {
                let known = names.into_iter().chain(self.has_ecn().then_some("ecn"));
                let hint = nearest(name, known);
                return Err(self.wrong(format!("has no setting {name:?}: {hint}")));
            };
            let Some(value) = value else {
                return Err(self.wrong(format!("has nothing behind {name:?}: write its value")));
            };
            set(value)?;
        }
        Ok(())
    }

    fn has_ecn(&self) -> bool {
        !matches!(self.name, FIFO | DUALPI2)
    }

    fn wrong(&self, hint: String) -> UnitError {
        UnitError::OutOfRange {
            quantity: KIND,
            text: self.text.into(),
            hint,
        }
    }
}

impl Red {
    /// What it holds if nothing is said, as `tc` has it.
    const USUAL: Bytes = Bytes(400_000);
}

fn set<T>(to: &mut T, value: Result<T, UnitError>) -> Result<(), UnitError> {
    *to = value?;
    Ok(())
}

fn limit_of(text: &str) -> Result<Limit, UnitError> {
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        return packets(text).map(Limit::Packets);
    }
    if let Ok(bytes) = text.parse::<Bytes>() {
        return match bytes {
            Bytes(0) => Err(nothing(text)),
            bytes => Ok(Limit::Bytes(bytes)),
        };
    }
    match parse_duration(text) {
        Ok(Duration::ZERO) => Err(nothing(text)),
        Ok(time) => Ok(Limit::Time(time)),
        Err(_) => Err(UnitError::OutOfRange {
            quantity: "limit",
            text: text.into(),
            hint: "is none: write packets (100), bytes (64KiB) or a time (50ms)".into(),
        }),
    }
}

fn nothing(text: &str) -> UnitError {
    UnitError::OutOfRange {
        quantity: "limit",
        text: text.into(),
        hint: "has no room for any packet: write 1 packet or more".into(),
    }
}

fn packets(text: &str) -> Result<u32, UnitError> {
    match whole(text)? {
        0 => Err(nothing(text)),
        packets => Ok(packets),
    }
}

fn gain(text: &str) -> Result<u32, UnitError> {
    const MOST: u32 = 32;
    match whole(text)? {
        gain @ 0..=MOST => Ok(gain),
        _ => Err(UnitError::OutOfRange {
            quantity: "gain",
            text: text.into(),
            hint: format!("is none: write 0 to {MOST}, in 1/16 per second"),
        }),
    }
}

fn coupling(text: &str) -> Result<u8, UnitError> {
    match u8::try_from(whole(text)?) {
        Ok(factor @ 1..) => Ok(factor),
        _ => Err(UnitError::OutOfRange {
            quantity: "coupling factor",
            text: text.into(),
            hint: "is none: write 1 to 255".into(),
        }),
    }
}

fn whole(text: &str) -> Result<u32, UnitError> {
    text.parse().map_err(|_| UnitError::NotANumber {
        quantity: "whole number",
        text: text.into(),
        example: "100",
    })
}

fn quantum(text: &str) -> Result<u32, UnitError> {
    const LEAST: u32 = 256;
    match text.parse::<Bytes>()? {
        Bytes(bytes @ 256..=0x10_0000) => Ok(bytes as u32),
        _ => Err(UnitError::OutOfRange {
            quantity: "quantum",
            text: text.into(),
            hint: format!("is none: write {LEAST}B to 1MiB"),
        }),
    }
}

fn red_bytes(text: &str) -> Result<Bytes, UnitError> {
    match text.parse::<Bytes>()? {
        bytes @ Bytes(1..=0x4000_0000) => Ok(bytes),
        _ => Err(UnitError::OutOfRange {
            quantity: "size",
            text: text.into(),
            hint: "is none of a queue: write 1B to 1GiB".into(),
        }),
    }
}

/// From 1 ms, as clocks of the kernel tick, to a minute.
fn duration(text: &str) -> Result<Duration, UnitError> {
    const LEAST: Duration = Duration::from_millis(1);
    const MOST: Duration = Duration::from_secs(60);
    let duration = parse_duration(text)?;
    if (LEAST..=MOST).contains(&duration) && duration.as_nanos().is_multiple_of(1000) {
        return Ok(duration);
    }
    Err(UnitError::OutOfRange {
        quantity: "duration",
        text: text.into(),
        hint: "is none of a queue: write whole microseconds from 1ms to 60s".into(),
    })
}

impl fmt::Display for Limit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Limit::Packets(packets) => packets.fmt(f),
            Limit::Bytes(bytes) => bytes.fmt(f),
            Limit::Time(time) => f.pad(&format_duration(*time)),
        }
    }
}

impl fmt::Display for Qdisc {
    /// Without the settings that are as usual.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = String::new();
        match self {
            Qdisc::Fifo(limit) => text += &format!("{FIFO} limit {limit}"),
            Qdisc::Codel(codel) => {
                text += CODEL;
                write_codel(&mut text, codel, &Codel::default());
            }
            Qdisc::FqCodel(fq) => {
                let usual = FqCodel::default();
                text += FQ_CODEL;
                write_codel(&mut text, &fq.codel, &usual.codel);
                unless(
                    &mut text,
                    "quantum",
                    Bytes(fq.quantum.into()),
                    Bytes(usual.quantum.into()),
                );
            }
            Qdisc::Pie(pie) => {
                let usual = Pie::default();
                text += PIE;
                unless(&mut text, "limit", pie.limit, usual.limit);
                times(&mut text, "target", pie.target, usual.target);
                times(&mut text, "tupdate", pie.tupdate, usual.tupdate);
                unless(&mut text, "alpha", pie.alpha, usual.alpha);
                unless(&mut text, "beta", pie.beta, usual.beta);
                ecn(&mut text, pie.ecn, usual.ecn);
            }
            Qdisc::Red(red) => {
                let usual = Red::of(red.limit);
                text += RED;
                unless(&mut text, "limit", red.limit, Red::USUAL);
                unless(&mut text, "min", red.min, usual.min);
                unless(&mut text, "max", red.max, usual.max);
                unless(&mut text, "probability", red.probability, usual.probability);
                unless(&mut text, "avpkt", red.avpkt, usual.avpkt);
                ecn(&mut text, red.ecn, usual.ecn);
            }
            Qdisc::DualPi2(dual) => {
                let usual = DualPi2::default();
                text += DUALPI2;
                unless(&mut text, "limit", dual.limit, usual.limit);
                times(&mut text, "target", dual.target, usual.target);
                times(&mut text, "tupdate", dual.tupdate, usual.tupdate);
                times(
                    &mut text,
                    "step_thresh",
                    dual.step_thresh,
                    usual.step_thresh,
                );
                unless(
                    &mut text,
                    "coupling_factor",
                    dual.coupling_factor,
                    usual.coupling_factor,
                );
            }
        }
        f.pad(&text)
    }
}

fn write_codel(text: &mut String, codel: &Codel, usual: &Codel) {
    unless(text, "limit", codel.limit, usual.limit);
    times(text, "target", codel.target, usual.target);
    times(text, "interval", codel.interval, usual.interval);
    ecn(text, codel.ecn, usual.ecn);
}

fn unless<T: PartialEq + fmt::Display>(text: &mut String, name: &str, value: T, usual: T) {
    if value != usual {
        *text += &format!(" {name} {value}");
    }
}

fn times(text: &mut String, name: &str, value: Duration, usual: Duration) {
    unless(text, name, format_duration(value), format_duration(usual));
}

fn ecn(text: &mut String, value: Ecn, usual: Ecn) {
    if value != usual {
        *text += match value {
            Ecn::On => " ecn",
            Ecn::Off => " noecn",
        };
    }
}
