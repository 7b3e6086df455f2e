//! `lastbyte explain`.

use std::path::{Path, PathBuf};

use clap::{Args, ValueEnum};

use super::budgets::{self, Budgets, facts};
use super::compare::{DEFAULT_AGAINST, DEFAULT_BASELINE};
use super::draft::write_drawing;
use super::options::Network;
use super::{Failure, arguments, own, print, print_json, screen, tell};
use lastbyte::explain::chains::ChainSizes;
use lastbyte::explain::{Explanation, check};
use lastbyte::report;
use lastbyte::study::{Arm, Cell, check_transports};

#[derive(Debug, Args)]
pub(super) struct Explain {
    /// What to explain: [NAME=]GROUP/CHAIN[:BYTESB][/KEY=VALUE...], as `compare` takes it, or a chain alone: fullchain.pem,
    /// example.com:443 [default: secp256r1/rsa-2048 SecP256r1MLKEM768/ml-dsa-65]
    #[arg(value_name = "ARM", value_parser = arguments::named)]
    arms: Vec<Arm>,
    #[command(flatten)]
    chains: arguments::Chains,
    #[command(flatten, next_help_heading = "Network")]
    network: Network,
    /// How it is told
    #[arg(long, value_name = "NAME", default_value = "text")]
    format: Format,
    /// Draw the flights of each arm, on the first of the networks with a response, into this file besides
    #[arg(long, value_name = "FILE.svg")]
    svg: Option<PathBuf>,
    /// Report besides which share of these chains needs how many flights: `public`, 8,151 of the Tranco top 10,000, or CSV with
    /// certificate_bytes, or chain_bytes and certificates, and count where a line is of several
    #[arg(long, value_name = "public|FILE.csv")]
    chain_sizes: Option<PathBuf>,
    #[command(flatten)]
    budgets: Budgets,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
enum Format {
    Text,
    Json,
}

impl Explain {
    pub(super) fn run(self) -> Result<(), Failure> {
        let judge = self.budgets.begin(budgets::Subject::Chains)?;
        let mut cells = self.network.cells().map_err(Failure::Usage)?;
        leave_luck_out(&mut cells);
        cells.iter().try_for_each(check).map_err(Failure::usage)?;
        let chains = self.chains;
        let usual = || {
            let usual = [DEFAULT_BASELINE, DEFAULT_AGAINST].map(arguments::arm_or_chain);
            usual.map(|arm| arm.map(|arm| chains.of_usual(&arm)))
        };
        let arms = if self.arms.is_empty() {
            usual().into_iter().collect::<Result<_, _>>()
        } else {
            Ok(self.arms.iter().map(|arm| chains.of(arm)).collect())
        };
        let arms: Vec<Arm> = arms.map_err(Failure::usage)?;
        arguments::check_once(&arms)?;
        check_transports(&arms, &cells).map_err(Failure::usage)?;
        own::fetch(&arms)?;
        for arm in &arms {
            let ends = [
                ("server", arm.server.is_foreign(), arm.server.name()),
                ("client_program", arm.client.is_foreign(), arm.client.name()),
            ];
            for (end, _, program) in ends.into_iter().filter(|(_, is_foreign, _)| *is_foreign) {
                tell(format_args!(
                    "{}: arithmetic has Lastbyte's own {end} in place of {program}, whose messages and writes are \
                     others: `lastbyte compare` measures it",
                    arm.name
                ));
            }
        }
        let sizes = self.chain_sizes.as_deref().map(chain_sizes).transpose()?;
        let explained = arms.iter().map(|arm| {
            let (explained, notes) = own::explained(arm, &cells)?;
            own::tell(&notes);
            let shares = sizes.as_ref().map(|sizes| sizes.shares(&explained));
            Ok(Explanation {
                chain_shares: shares.transpose().map_err(Failure::usage)?,
                ..explained
            })
        });
        let explained: Vec<_> = explained.collect::<Result<_, Failure>>()?;
        if let Some(path) = &self.svg {
            write_drawing(path, &report::explanation_svg(&explained))?;
        }
        match self.format {
            Format::Text => print(&report::explanation(&explained, screen())),
            Format::Json => print_json(&report::explanation_json(&explained)),
        }?;
        let facts: Vec<_> = explained.iter().flat_map(facts).collect();
        judge.judge("lastbyte explain", &facts)
    }
}

fn chain_sizes(path: &Path) -> Result<ChainSizes, Failure> {
    if path == Path::new("public") {
        return ChainSizes::public().map_err(Failure::usage);
    }
    ChainSizes::parse(&path.to_string_lossy(), &arguments::table(path)?).map_err(Failure::usage)
}

/// A network by name comes without the loss and the jitter that it has: it is explained at its best.
fn leave_luck_out(cells: &mut [Cell]) {
    let mut told = None;
    for cell in cells {
        let Some(name) = &cell.link_name else {
            continue;
        };
        if (cell.has_loss() || cell.has_jitter()) && told.as_ref() != Some(name) {
            told = Some(name.clone());
            tell(format_args!(
                "{name} without its loss and jitter, which are luck: `lastbyte compare` has them"
            ));
        }
        cell.link = cell.link.without_luck();
    }
}
