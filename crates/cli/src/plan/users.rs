//! Users from the command line: networks by name, or RTTs, each with its share.

use std::fmt;
use std::str::FromStr;
use std::time::Duration;

use lastbyte::study::{NamedNetwork, Parameter, Population};
use lastbyte_link::{format_duration, parse_duration};

/// Users, as they were given.
#[derive(Clone, Debug)]
pub(super) struct Mix {
    kinds: Kinds,
    /// As they were written.
    text: String,
}

/// Each kind of users with its weight.
#[derive(Clone, Debug)]
enum Kinds {
    Networks(Vec<(&'static NamedNetwork, f64)>),
    /// What is not said besides is drawn as usual.
    Rtts(Vec<(Duration, f64)>),
}

impl fmt::Display for Mix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// How shares are written: all of them as parts of a hundred, or all in proportion.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Written {
    Percent,
    Proportion,
}

impl FromStr for Mix {
    type Err = String;

    fn from_str(text: &str) -> Result<Mix, String> {
        let mut parts: Vec<(&str, f64)> = Vec::new();
        let mut written = Vec::new();
        for part in text.split(',') {
            let Some((name, share)) = part.trim().split_once('=') else {
                return Err(format!(
                    "{part:?} has no share: write each network or RTT with one, as in fibre=70,lte=30"
                ));
            };
            let (number, how) = match share.strip_suffix('%') {
                Some(number) => (number, Written::Percent),
                None => (share, Written::Proportion),
            };
            let weight = number.trim().parse::<f64>().ok();
            let weight = weight.filter(|weight| *weight > 0.0 && weight.is_finite());
            let Some(weight) = weight else {
                return Err(format!(
                    "{share:?} of {name:?} is no share: write a number above 0, or leave {name} out"
                ));
            };
            parts.push((name.trim(), weight));
            written.push(how);
        }
        if written.iter().any(|how| Some(how) != written.first()) {
            return Err(
                "some shares have a % and some have none: write all of them alike".to_owned(),
            );
        }
        let sum: f64 = parts.iter().map(|(_, weight)| weight).sum();
        if written.first() == Some(&Written::Percent) && (sum - 100.0).abs() > 0.05 {
            return Err(format!(
                "the shares are {sum} % together: have them be 100 %, or write them without % as proportions"
            ));
        }
        Ok(Mix {
            kinds: kinds(&parts)?,
            text: text.to_owned(),
        })
    }
}

fn kinds(parts: &[(&str, f64)]) -> Result<Kinds, String> {
    let rtts = parts
        .iter()
        .map(|(name, weight)| Some((parse_duration(name).ok()?, *weight)));
    if let Some(rtts) = rtts.collect::<Option<Vec<_>>>() {
        let named = rtts.iter().map(|(rtt, _)| format_duration(*rtt));
        check_once(named)?;
        return Ok(Kinds::Rtts(rtts));
    }
    let mut networks = Vec::new();
    for (name, weight) in parts {
        if parse_duration(name).is_ok() {
            return Err(format!(
                "{name:?} is an RTT among networks, which have their own: name networks alone, or RTTs alone; a table with both \
                 is a file for --rtt"
            ));
        }
        let network = NamedNetwork::find(name).map_err(|error| error.to_string())?;
        networks.push((network, *weight));
    }
    check_once(networks.iter().map(|(network, _)| network.name.to_owned()))?;
    Ok(Kinds::Networks(networks))
}

fn check_once(names: impl Iterator<Item = String>) -> Result<(), String> {
    let mut seen = Vec::new();
    for name in names {
        if seen.contains(&name) {
            return Err(format!("{name:?} is given twice: give it one share"));
        }
        seen.push(name);
    }
    Ok(())
}

impl Mix {
    /// What stands in `[population]`.
    pub(super) fn population(&self) -> String {
        match &self.kinds {
            Kinds::Rtts(rtts) => {
                let texts = rtts.iter().map(|(rtt, _)| format_duration(*rtt));
                let texts: Vec<String> = texts.collect();
                let weights = rtts.iter().map(|(_, weight)| *weight);
                let classes: Vec<_> = texts.iter().map(String::as_str).zip(weights).collect();
                Population::table(&classes, &[(Parameter::RTT, texts.clone())])
            }
            Kinds::Networks(networks) => NamedNetwork::population(networks),
        }
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::path::Path;

    use super::*;

    fn shares(text: &str) -> Vec<(String, f64)> {
        let mix: Mix = text.parse().unwrap();
        let population = Population::parse(&mix.population(), Path::new("users")).unwrap();
        let draws = (0..2000).map(|index| population.draw(index).class.unwrap().to_string());
        let mut counts: Vec<(String, f64)> = Vec::new();
        for class in draws {
            match counts.iter_mut().find(|(known, _)| *known == class) {
                Some((_, count)) => *count += 1.0 / 2000.0,
                None => counts.push((class, 1.0 / 2000.0)),
            }
        }
        counts.sort_by(|(one, _), (other, _)| one.cmp(other));
        counts
    }

    #[test]
    fn users_have_the_shares_that_were_given() {
        for (text, expected) in [
            (
                "fibre=56,cable=14,LTE=30",
                vec![("cable", 0.14), ("fibre", 0.56), ("lte", 0.3)],
            ),
            ("lte=3, fibre=1", vec![("fibre", 0.25), ("lte", 0.75)]),
            (
                "30ms=80%,80ms=15%,0.2s=5%",
                vec![("200ms", 0.05), ("30ms", 0.8), ("80ms", 0.15)],
            ),
        ] {
            let shares = shares(text);
            assert_eq!(shares.len(), expected.len(), "{shares:?}");
            for ((class, share), (name, wanted)) in shares.iter().zip(expected) {
                assert!(class == name && (share - wanted).abs() < 0.01, "{shares:?}");
            }
        }
    }

    #[test]
    fn what_does_not_add_up_is_refused() {
        for (text, expected) in [
            ("", "has no share"),
            ("lte", "has no share"),
            ("lte=0,fibre=1", "write a number above 0"),
            ("lte=-1", "write a number above 0"),
            ("lte=inf", "write a number above 0"),
            ("lte=nan", "write a number above 0"),
            ("lte=30%,fibre=60%", "the shares are 90 % together"),
            ("lte=30%,fibre=70", "write all of them alike"),
            ("lte=1,lte=2", "\"lte\" is given twice"),
            ("30ms=1,0.03s=2", "\"30ms\" is given twice"),
            ("lte=1,30ms=2", "is an RTT among networks"),
            ("ltee=1", "lte"),
        ] {
            let refused = text.parse::<Mix>().unwrap_err();
            assert!(
                refused.contains(expected) && !refused.contains('\n'),
                "{text}: {refused}"
            );
        }
    }
}
