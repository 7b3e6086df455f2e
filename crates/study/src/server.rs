//! Whose server answers, and what it can be asked for.

use lastbyte_link::{Bytes, named};
use lastbyte_sizes::{Group, KeyAlgorithm, Resumption};
use thiserror::Error;

use super::{
    Arm, ArmChain, Cell, CpuTime, Delivery, Ecn, Emulation, Experiment, NobodyHas, Parameter,
    Preset, Sessions, Study, TransportName, Writes,
};

/// Whose server answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Server {
    /// Our own, which answers the transfers of one connection.
    #[default]
    Lastbyte,
    /// Node.js' `http2`, on OpenSSL.
    Node,
    /// nginx, on OpenSSL.
    Nginx,
    /// Go's `net/http`, on `crypto/tls`.
    Go,
    /// Caddy, on Go's `crypto/tls`; over QUIC on quic-go.
    Caddy,
    /// quic-go's HTTP/3, on Go's `crypto/tls`.
    QuicGo,
    /// s2n-quic, on rustls and AWS-LC.
    S2nQuic,
    /// quiche's HTTP/3, on BoringSSL.
    Quiche,
}

named!(Server, "server", {
    Lastbyte => "lastbyte",
    Node => "node",
    Nginx => "nginx",
    Go => "go",
    Caddy => "caddy",
    QuicGo => "quic-go",
    S2nQuic => "s2n-quic",
    Quiche => "quiche",
});

impl Server {
    /// Whether it is a program that people run, which decides itself what it sends.
    pub fn is_foreign(self) -> bool {
        self != Server::Lastbyte
    }

    /// Whether a cell says its initial window, congestion control and initial RTT over QUIC, and an arm how much it sends to an
    /// address that it does not know. Others have their own, and all have their own datagrams: quiche, of 1200 bytes until the
    /// handshake is complete, whatever it is set to.
    pub fn has_quic_knobs(self) -> bool {
        self == Server::Quiche
    }

    /// Whether it can be reached over this transport here.
    pub fn speaks(self, transport: TransportName) -> bool {
        match (self, transport) {
            (Server::Lastbyte | Server::Caddy, _) => true,
            (Server::Node | Server::Nginx | Server::Go, transport) => {
                transport == TransportName::Tcp
            }
            (Server::QuicGo | Server::S2nQuic | Server::Quiche, transport) => {
                transport == TransportName::Quic
            }
        }
    }

    /// Whether it serves pages over this transport here.
    pub(super) fn serves_pages(self, transport: TransportName) -> bool {
        match (self, transport) {
            (Server::Caddy, _) => true,
            (Server::Node | Server::Nginx | Server::Go, transport) => {
                transport == TransportName::Tcp
            }
            (Server::QuicGo, transport) => transport == TransportName::Quic,
            (Server::Lastbyte | Server::S2nQuic | Server::Quiche, _) => false,
        }
    }

    /// Groups that its newest versions have.
    fn groups(self) -> &'static [Group] {
        match self {
            Server::Lastbyte | Server::Node | Server::Nginx => &Group::ALL,
            Server::Go | Server::Caddy | Server::QuicGo | Server::S2nQuic | Server::Quiche => &[
                Group::X25519MlKem768,
                Group::X25519,
                Group::Secp256r1,
                Group::Secp384r1,
            ],
        }
    }
}

/// What the servers of an experiment's arms can't answer: what, why, and what to write instead.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub(super) enum ServerProblem {
    /// A parameter acts on no arm.
    #[error(transparent)]
    NobodyHas(#[from] NobodyHas),
    /// One of a study's parts has both.
    #[error("pages and transfers are measured apart: write a [[measure]] for each")]
    Apart,
    /// Something that pages are not loaded with.
    #[error("{0}")]
    OfPages(&'static str),
    #[error(
        "{parameter} is of pages, and here is none: add page = \"median-2024\", or leave it out"
    )]
    NoPage { parameter: &'static str },
    #[error(
        "cpu {0} is of browsers and of servers that people run, and here are none: leave cpu out, or give an arm \
         server=node"
    )]
    NobodyComputes(CpuTime),
    /// Something that no transfer of such a server has.
    #[error("arm {arm:?}: server={server} serves one object, {problem}")]
    OneObject {
        arm: String,
        server: Server,
        problem: &'static str,
    },
    #[error("arm {arm:?}: {problem}")]
    Arm {
        arm: String,
        problem: Box<ServerProblem>,
    },
    #[error(
        "{key} is for Lastbyte's own server; server={server} decides that itself: leave it out"
    )]
    OwnServer { key: &'static str, server: Server },
    #[error(
        "{key} is for Lastbyte's own ends; a browser and {server} decide that themselves: leave it out"
    )]
    OwnEnds { key: &'static str, server: Server },
    #[error("server={server} has no {group}: it has {}", names(server.groups()))]
    Group { server: Server, group: Group },
    /// Something that programs do not over QUIC here.
    #[error("it is measured over QUIC with programs that people run: {0}")]
    Handshakes(&'static str),
    #[error("server={server} has no {key} for TLS: it takes chains of ecdsa, rsa and ml-dsa")]
    Key { server: Server, key: KeyAlgorithm },
    #[error(
        "Lastbyte's own server answers one connection, and a page takes several, with HTTP: add server=node or \
         server=nginx"
    )]
    OneConnection,
    #[error(
        "pages come over QUIC from quic-go and from Caddy, and from no other server: write server=quic-go or \
         server=caddy"
    )]
    NoHttp3,
    #[error(
        "{parameter} is of Lastbyte's own ends of QUIC, and a browser and its server decide that themselves: leave it out"
    )]
    OfOurEnds { parameter: &'static str },
    #[error("a browser loads pages, whichever client the arm names: leave client_program= out")]
    OtherClient,
    #[error(
        "Chromium offers no {0} over QUIC: write a classical chain that is as long, as ecdsa-p256:9000B, or leave \
         transport=quic out"
    )]
    UnverifiedOverQuic(KeyAlgorithm),
    #[error("Chromium has no {group}: it has {}", names(known))]
    BrowserGroup {
        group: Group,
        known: &'static [Group],
    },
    #[error("Chromium can't verify {0}: it takes chains of ecdsa, rsa and ml-dsa")]
    Unverified(KeyAlgorithm),
    #[error(
        "the browser's store of trusted roots (NSS) takes no root of {root_key} (SEC_ERROR_ADDING_CERT): write \
         {leaf}+{ca}+ecdsa-p256, whose root, which is not sent, is classical"
    )]
    Root {
        leaf: KeyAlgorithm,
        ca: KeyAlgorithm,
        root_key: KeyAlgorithm,
    },
}

impl ServerProblem {
    /// The same, which is one of an arm.
    pub(super) fn of(self, arm: &Arm) -> ServerProblem {
        ServerProblem::Arm {
            arm: arm.name.clone(),
            problem: Box::new(self),
        }
    }
}

fn names(groups: &[Group]) -> String {
    let names: Vec<&str> = groups.iter().map(|group| group.name()).collect();
    names.join(", ")
}

/// Whether the servers of an experiment's arms can answer all transfers of its cells.
///
/// # Errors
///
/// One line for the first that can't: what, why, and what to write instead.
pub(super) fn check_transfers(experiment: &Experiment) -> Result<(), ServerProblem> {
    let unusual = |cell: &Cell| {
        let mut of_pages = Parameter::ALL.into_iter().filter(|one| one.is_of_pages());
        of_pages.find(|parameter| !parameter.is_usual(cell))
    };
    if let Some(parameter) = experiment.cells.iter().find_map(unusual) {
        return Err(ServerProblem::NoPage {
            parameter: parameter.name(),
        });
    }
    let over_quic = || (experiment.arms.iter()).filter(|arm| arm.is_of_programs_over_quic());
    over_quic().try_for_each(|arm| {
        let checked = check_arm(arm).and_then(|()| check_handshakes(experiment));
        checked.map_err(|problem| problem.of(arm))
    })?;
    let is_over_tcp = |arm: &&Arm| arm.server.is_foreign() && !arm.is_of_programs_over_quic();
    let foreign = || experiment.arms.iter().filter(is_over_tcp);
    let Some(first) = foreign().next() else {
        return match experiment.cpu {
            CpuTime::Laptop | CpuTime::Phone => Err(ServerProblem::NobodyComputes(experiment.cpu)),
            CpuTime::None | CpuTime::Beside | CpuTime::Calibrated => Ok(()),
        };
    };
    let cells = &experiment.cells;
    let refused = [
        (
            matches!(experiment.cpu, CpuTime::Beside | CpuTime::Calibrated),
            "and what it computes is not measured on this machine: leave cpu out, or write laptop or none",
        ),
        (
            experiment.cpu == CpuTime::Phone,
            "and no browser is there whose phone it could be: leave cpu out, or write laptop or none",
        ),
        (
            experiment.emulation == Emulation::Link,
            "and runs over netem: leave emulation = \"link\" out",
        ),
        (
            cells.iter().any(|cell| cell.preset != Preset::Network),
            "and the preset has one of its own: leave preset out",
        ),
        (
            cells.iter().any(|cell| cell.population.is_some()),
            "and answers no population: leave [population] out",
        ),
        (
            cells.iter().any(|cell| cell.upload > Bytes(0)),
            "and takes no uploads: leave upload out",
        ),
        (
            cells.iter().any(|cell| cell.hosts.writes != Writes::WHOLE),
            "and decides its writes itself: leave writes out",
        ),
    ];
    if let Some((_, problem)) = refused.into_iter().find(|(is_so, _)| *is_so) {
        return Err(ServerProblem::OneObject {
            arm: first.name.clone(),
            server: first.server,
            problem,
        });
    }
    foreign().try_for_each(|arm| check_arm(arm).map_err(|problem| problem.of(arm)))
}

/// Handshakes with programs over QUIC are read off the wire, and nothing after them is.
fn check_handshakes(experiment: &Experiment) -> Result<(), ServerProblem> {
    let cells = &experiment.cells;
    let refused = [
        (
            experiment.cpu != CpuTime::None,
            "what they compute takes no time, and is not measured beside: write cpu = \"none\"",
        ),
        (
            experiment.emulation != Emulation::Link,
            "the emulator in user space sees their datagrams: write emulation = \"link\"",
        ),
        (
            cells.iter().any(|cell| cell.data > Bytes(0)),
            "their handshakes are, and no responses: write data = \"0B\"",
        ),
        (
            cells.iter().any(|cell| cell.upload > Bytes(0)),
            "they send no uploads: leave upload out",
        ),
        (
            cells.iter().any(|cell| cell.hosts.ecn != Ecn::Off),
            "they decide themselves whether they use ECN: leave ecn out",
        ),
        (
            cells.iter().any(|cell| cell.population.is_some()),
            "they have no population: leave [population] out",
        ),
        (
            cells.iter().any(|cell| cell.preset != Preset::Network),
            "the preset has a network of its own: leave preset out",
        ),
    ];
    match refused.into_iter().find(|(is_so, _)| *is_so) {
        Some((_, problem)) => Err(ServerProblem::Handshakes(problem)),
        None => Ok(()),
    }
}

fn check_arm(arm: &Arm) -> Result<(), ServerProblem> {
    let server = arm.server;
    if let Some(key) = of_our_server(arm) {
        return Err(ServerProblem::OwnServer { key, server });
    }
    if !server.groups().contains(&arm.group) {
        return Err(ServerProblem::Group {
            server,
            group: arm.group,
        });
    }
    let ArmChain::Made(spec) = &arm.chain else {
        return Ok(());
    };
    let mut keys = [spec.leaf, spec.ca, spec.root_key].into_iter();
    match keys.find(|key| !is_classical(*key) && !is_ml_dsa(*key)) {
        Some(key) => Err(ServerProblem::Key { server, key }),
        None => Ok(()),
    }
}

/// The first key of an arm that only our own server has a meaning for, as it is written.
pub(super) fn of_our_server(arm: &Arm) -> Option<&'static str> {
    let usual = Arm::bare(arm.group, arm.chain.clone());
    let said = [
        (arm.client_chain.is_some(), "mutual="),
        (arm.resumption != Resumption::Full, "resume="),
        (matches!(arm.sessions, Sessions::Share { .. }), "resume="),
        (arm.delivery != Delivery::Full, "delivery="),
        (arm.server_stack != usual.server_stack, "stack="),
        (arm.tickets != usual.tickets, "tickets="),
        (arm.record_size != usual.record_size, "record_size="),
        (arm.flush != usual.flush, "flush="),
        (arm.address_validation.is_some(), "address_validation="),
    ];
    let found = said.into_iter().find(|(is_so, _)| *is_so);
    found.map(|(_, key)| key)
}

pub(super) fn is_classical(key: KeyAlgorithm) -> bool {
    let name = key.name();
    name.starts_with("ecdsa") || name.starts_with("rsa")
}

pub(super) fn is_ml_dsa(key: KeyAlgorithm) -> bool {
    key.name().starts_with("ml-dsa")
}

impl Experiment {
    /// The same with the CPU time that is asked for, or what is usual: what computing takes is measured beside transfers of our
    /// own server alone, and what programs take that people run is in the clock.
    #[must_use]
    pub fn with_cpu(self, cpu: Option<CpuTime>) -> Experiment {
        let usual = if self.has_pages() {
            CpuTime::Laptop
        } else if self.arms.iter().any(Arm::is_of_programs_over_quic) {
            CpuTime::None
        } else if self.has_foreign_servers() {
            CpuTime::Laptop
        } else {
            CpuTime::Beside
        };
        Experiment {
            cpu: cpu.unwrap_or(usual),
            ..self
        }
    }

    /// Whether programs that people run answer in it.
    pub fn has_foreign_servers(&self) -> bool {
        self.arms.iter().any(Arm::has_foreign_ends)
    }
}

impl Study {
    /// Whether programs that people run answer in any of its measures.
    pub fn has_foreign_servers(&self) -> bool {
        let mut experiments = self.measures.iter().map(|measure| &measure.experiment);
        experiments.any(Experiment::has_foreign_servers)
    }
}

#[cfg(test)]
mod tests;
