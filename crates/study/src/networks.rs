//! Networks that have a name: one table for studies and for the command line.

use lastbyte_link::{Direction, Distribution, Link, UnknownName};

use super::{Cell, Parameter, Population, StudyFolder};

/// A kind of network, as someone has published it. All values are written as options take them.
#[derive(Debug, PartialEq, Eq)]
pub struct NamedNetwork {
    /// Its name, on the command line and in studies.
    pub name: &'static str,
    /// What it is.
    pub what: &'static str,
    /// Without queues: from the user to a server nearby and back.
    pub rtt: &'static str,
    /// `DOWN/UP`.
    pub rate: &'static str,
    /// Of each direction.
    pub loss: &'static str,
    /// Of each direction.
    pub jitter: &'static str,
    /// Who says so, with the year. What is stated is an assumption.
    pub source: &'static str,
}

#[rustfmt::skip]
const ALL: [NamedNetwork; 9] = [
    network("fibre", "fibre to the home", "16ms", "300mbit/300mbit", "0%", "0ms", "RTT: Ookla, Verizon in the US, Q3 2023; rates stated"),
    network("cable", "cable", "28ms", "250mbit/20mbit", "0%", "0ms", "down: Ookla, Spectrum and Cox in the US, 2023; up: the FCC's benchmark, 2024; RTT: WebPageTest's profile Cable"),
    network("lte", "LTE (4G)", "55ms", "21mbit/6mbit", "0%", "0ms", "Opensignal, State of Mobile, US, 2019: 44 to 66 ms, 21.3 and 6.3 Mbit/s"),
    network("5g", "5G below 6 GHz", "50ms", "166mbit/21mbit", "0%", "0ms", "rates: Ookla, medians of the world, Q3 2021; RTT: Ookla, T-Mobile in the US, Q3 2023"),
    network("3g", "3G", "300ms", "1.6mbit/768kbit", "0%", "0ms", "WebPageTest's profile 3G, as of 2023"),
    network("leo", "a satellite in low orbit", "50ms", "150mbit/15mbit", "0.5%", "0ms", "RTT: Michel et al., Starlink in Belgium, 2022; down: as promoted there; up and loss stated"),
    network("geo", "a geostationary satellite", "600ms", "100mbit/10mbit", "0%", "0ms", "RTT: Huston, APNIC, 2022 (477 ms are light's); rates: the subscription of Michel et al., 2022"),
    network("bad-wifi", "Wi-Fi far from its access point", "40ms", "10mbit/5mbit", "1%", "10ms", "RTT: fibre, and a hop over 20 ms for half of all packets (Pei et al., 2016); all else stated"),
    network("lte-m", "LTE-M (Cat-M1)", "200ms", "1mbit/1mbit", "0%", "0ms", "rates: peak of 3GPP Release 13, 2016; RTT stated, as of slow links elsewhere here"),
];

const fn network(
    name: &'static str,
    what: &'static str,
    rtt: &'static str,
    rate: &'static str,
    loss: &'static str,
    jitter: &'static str,
    source: &'static str,
) -> NamedNetwork {
    NamedNetwork {
        name,
        what,
        rtt,
        rate,
        loss,
        jitter,
        source,
    }
}

/// What else they are called.
const CALLED_ELSEWHERE: [(&str, &str); 7] = [
    ("4g", "lte"),
    ("ftth", "fibre"),
    ("docsis", "cable"),
    ("starlink", "leo"),
    ("satellite", "geo"),
    ("wifi", "bad-wifi"),
    ("wi-fi", "bad-wifi"),
];

impl NamedNetwork {
    /// Users who have one of these networks each, with its weight, as a line of `[population]`.
    pub fn population(networks: &[(&NamedNetwork, f64)]) -> String {
        let names: Vec<_> = (networks.iter())
            .map(|(network, weight)| (network.name, *weight))
            .collect();
        let first = networks.iter().take(1);
        let columns = first.flat_map(|(network, _)| network.values());
        let columns = columns.map(|(parameter, _)| {
            let values = networks.iter().flat_map(|(network, _)| network.values());
            let values = values.filter(|(of, _)| *of == parameter);
            (
                parameter,
                values.map(|(_, value)| value.to_owned()).collect(),
            )
        });
        Population::table(&names, &columns.collect::<Vec<_>>())
    }

    /// All that there are, in the order in which they are reported.
    pub const ALL: [NamedNetwork; ALL.len()] = ALL;

    /// The one of this name, in any case.
    ///
    /// # Errors
    ///
    /// When there is none, with the nearest.
    pub fn find(name: &str) -> Result<&'static NamedNetwork, UnknownName> {
        static NETWORKS: [NamedNetwork; ALL.len()] = ALL;
        let lower = name.to_ascii_lowercase();
        let elsewhere = CALLED_ELSEWHERE.iter().find(|(called, _)| *called == lower);
        let meant = elsewhere.map(|(_, meant)| vec![*meant]);
        let meant = meant.unwrap_or_else(|| NETWORKS.iter().map(|known| known.name).collect());
        (NETWORKS.iter().find(|known| known.name == lower))
            .ok_or_else(|| UnknownName::new("network", name, meant))
    }

    /// What it says of parameters, as texts.
    pub fn values(&self) -> [(Parameter, &'static str); 4] {
        let [rate, loss, jitter] = [Parameter::RATE, Parameter::LOSS, Parameter::JITTER];
        [
            (Parameter::RTT, self.rtt),
            (rate, self.rate),
            (loss, self.loss),
            (jitter, self.jitter),
        ]
    }

    /// The network itself, with what goes without saying of all else.
    pub fn link(&self) -> Link {
        let direction = Direction {
            distribution: Distribution::Normal,
            ..Direction::default()
        };
        let mut cell = Cell {
            link: Link {
                forward: direction.clone(),
                backward: direction,
            },
            ..Cell::default()
        };
        for (parameter, text) in self.values() {
            // A test reads all of them.
            let _ = parameter.set(&mut cell, text, &StudyFolder::HERE);
        }
        cell.link
    }
}

#[cfg(test)]
mod tests;
