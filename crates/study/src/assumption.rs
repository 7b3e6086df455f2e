//! What an answer rests on that a reader may not have thought of: one list, for all answers about a chain. Each comes
//! with what changes it.

use lastbyte_link::{Loss, counted};
use lastbyte_sizes::RootDelivery;

use super::{Arm, ArmChain, Cell, Client, Parameter, Quic, Traffic, TransportName};

/// What a server that writes its handshake in pieces needs more than one that writes it at once, in bytes at most: those that the
/// last segments of nginx's writes are short of.
pub const IN_PIECES: usize = 1336;

/// Something that an answer rests on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assumption {
    /// What it is of, in a word or two.
    pub subject: &'static str,
    /// What is assumed.
    pub value: String,
    /// What changes it.
    pub changed_by: &'static str,
}

/// All that an answer about this arm over these cells rests on.
pub fn assumptions(arm: &Arm, cells: &[Cell]) -> Vec<Assumption> {
    let all = of_chain(arm).into_iter().chain(of_network(arm, cells));
    all.chain(of_ends(arm, cells)).collect()
}

/// What client and server are.
fn of_ends(arm: &Arm, cells: &[Cell]) -> Vec<Assumption> {
    let loads_pages = !cells.is_empty() && cells.iter().all(|cell| cell.page.is_some());
    let tickets = Assumption {
        subject: "tickets",
        value: match arm.tickets {
            _ if arm.server.is_foreign() => format!("as {} sends them", arm.server.name()),
            0 => "none".to_owned(),
            tickets => counted(usize::from(tickets), "ticket"),
        },
        changed_by: if arm.server.is_foreign() {
            "server= in the arm"
        } else {
            "tickets=2 in the arm, where it is measured"
        },
    };
    let is_quic = arm.transport == TransportName::Quic;
    let quic = is_quic.then(|| Assumption {
        subject: "QUIC",
        value: if arm.has_foreign_ends() {
            let client = if loads_pages {
                Client::Chromium
            } else {
                arm.client
            };
            format!(
                "as {} has it at the client and {} at the server",
                quic_of(client.name()),
                quic_of(arm.server.name())
            )
        } else {
            "as quinn has it at both ends: other stacks pace and acknowledge otherwise".to_owned()
        },
        changed_by: if loads_pages {
            "server= in the arm"
        } else {
            "server= and client_program= in the arm"
        },
    });
    let writes = (!arm.server.is_foreign() && !is_quic).then(|| Assumption {
        subject: "writes",
        value: format!(
            "the handshake leaves in one write: nginx, which has several, needs another flight up to {},{:03} bytes \
             earlier",
            IN_PIECES / 1000,
            IN_PIECES % 1000
        ),
        changed_by: "server=nginx in the arm, where it is measured",
    });
    let hello = if loads_pages {
        Assumption {
            subject: "hello",
            value: "that of the Chromium that is installed".to_owned(),
            changed_by: "LASTBYTE_CHROMIUM",
        }
    } else if arm.client.is_foreign() {
        Assumption {
            subject: "hello",
            value: format!("that of {}", arm.client),
            changed_by: "client_program= in the arm",
        }
    } else {
        Assumption {
            subject: "hello",
            value: format!(
                "that of {}, with a key share of {}",
                arm.client_stack,
                shares(arm)
            ),
            changed_by: "key_share= and client_stack= in the arm; `lastbyte probe` has a browser's",
        }
    };
    let computing = loads_pages.then(|| Assumption {
        subject: "computing",
        value:
            "as on a device of a profile, the same for all arms, without what ML-KEM and ML-DSA add"
                .to_owned(),
        changed_by: "--cpu, --cpu-slowdown",
    });
    let all = [Some(tickets), writes, quic, Some(hello), computing];
    all.into_iter().flatten().collect()
}

/// What an end of QUIC is on.
fn quic_of(end: &str) -> &str {
    match end {
        "lastbyte" => "quinn",
        program => program,
    }
}

fn shares(arm: &Arm) -> String {
    let names: Vec<String> = arm.key_shares.iter().map(ToString::to_string).collect();
    names.join(" and ")
}

fn of_chain(arm: &Arm) -> Vec<Assumption> {
    let spec = match &arm.chain {
        ArmChain::Made(spec) => spec,
        ArmChain::Pem(_) => {
            return vec![Assumption {
                subject: "chain",
                value: "as it is in the file or at the server".to_owned(),
                changed_by: "another file",
            }];
        }
    };
    let alone = "none: the proof of a Merkle Tree Certificate is in their place";
    let is_alone = arm.delivery.is_alone();
    let size = spec.certificate_bytes.map(|bytes| Assumption {
        subject: "size",
        value: format!("the Certificate message has {bytes} bytes, whatever is in it"),
        changed_by: "no :SIZE in the arm",
    });
    let timestamps = Assumption {
        subject: "timestamps",
        value: match spec.scts {
            _ if is_alone => alone.to_owned(),
            0 => "none, where public sites have two or three".to_owned(),
            scts => format!("{scts}, by logs that sign with {}", spec.sct_algorithm),
        },
        changed_by: "scts= and sct_algorithm= in the arm, or --chain-profile",
    };
    let root = match spec.root {
        RootDelivery::Sent => ", and the root",
        RootDelivery::Omitted => "",
    };
    let intermediates = Assumption {
        subject: "intermediates",
        value: match spec.intermediates {
            _ if is_alone => alone.to_owned(),
            intermediates => format!("{intermediates}{root}"),
        },
        changed_by: "intermediates= in the arm, or --chain-profile",
    };
    let names = Assumption {
        subject: "names",
        value: format!("{} in the end-entity's certificate", spec.names),
        changed_by: "names= in the arm",
    };
    let ocsp = Assumption {
        subject: "OCSP",
        value: "no response is stapled".to_owned(),
        changed_by: "a size in the arm, as in ml-dsa-44:16KB",
    };
    let all = [timestamps, intermediates, names, ocsp];
    size.into_iter().chain(all).collect()
}

fn of_network(arm: &Arm, cells: &[Cell]) -> Vec<Assumption> {
    let all: Vec<&Cell> = cells.iter().collect();
    if all.is_empty() {
        return Vec::new();
    }
    let of = |parameter: Parameter| {
        let is_drawn = |cell: &&Cell| {
            let population = cell.population.as_deref();
            population.is_some_and(|population| population.draws(parameter))
        };
        if cells.iter().any(|cell| is_drawn(&cell)) {
            "as it is drawn for each user".to_owned()
        } else {
            parameter.values(&all).join(" and ")
        }
    };
    let mut carried: Vec<&Traffic> = Vec::new();
    for traffic in cells.iter().filter_map(|cell| cell.traffic.as_ref()) {
        if carried.iter().all(|known| known.name() != traffic.name()) {
            carried.push(traffic);
        }
    }
    let carried = (!carried.is_empty()).then(|| Assumption {
        subject: "traffic",
        value: carried
            .iter()
            .map(|traffic| match traffic.kind().what.as_str() {
                "" => format!("as in {traffic}"),
                what => format!("{traffic}, {what}"),
            })
            .collect::<Vec<_>>()
            .join("; "),
        changed_by: "--traffic, also a file of your own, and --data, --requests, --think, --upload",
    });
    let is_lossy = cells.iter().any(Cell::has_loss);
    let is_each_alone = cells.iter().all(|cell| {
        let directions = [&cell.link.forward, &cell.link.backward];
        (directions.iter()).all(|way| matches!(way.loss, Loss::Random(_)))
    });
    let loss = is_lossy.then(|| Assumption {
        subject: "loss",
        value: if is_each_alone {
            format!(
                "{} of packets in each direction, each packet for itself",
                of(Parameter::LOSS)
            )
        } else {
            format!("{}, in each direction", of(Parameter::LOSS))
        },
        changed_by: "--loss, also in bursts: 1% in bursts of 4",
    });
    let rate = if cells.iter().any(Cell::has_trace) {
        Assumption {
            subject: "rate",
            value: format!("that of the trace {}", of(Parameter::TRACE)),
            changed_by: "--trace",
        }
    } else {
        Assumption {
            subject: "rate",
            value: of(Parameter::RATE),
            changed_by: "--rate, --link",
        }
    };
    let of_all = [
        Assumption {
            subject: "window",
            value: match arm.transport {
                TransportName::Quic if arm.server.has_quic_knobs() => format!(
                    "{} datagrams of {} bytes at first",
                    of(Parameter::INITCWND),
                    Quic::LEAST_DATAGRAM
                ),
                TransportName::Quic if arm.server.is_foreign() => {
                    format!("as {} has it", arm.server)
                }
                TransportName::Tcp => format!("{} segments at first", of(Parameter::INITCWND)),
                TransportName::Quic => format!(
                    "{} datagrams of {} bytes at first",
                    of(Parameter::INITCWND),
                    of(Parameter::QUIC_DATAGRAM)
                ),
            },
            changed_by: "--initcwnd",
        },
        rate,
    ];
    of_all.into_iter().chain(loss).chain(carried).collect()
}
