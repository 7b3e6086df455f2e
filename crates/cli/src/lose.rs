//! `lastbyte lose`.

use clap::Args;
use lastbyte::lab;
use lastbyte::report;
use lastbyte::study::{Arm, Cell, Experiment, Study, TransportName};
use lastbyte_link::{Bytes, Seed};

use super::arguments::{self, Format};
use super::compare::{interrupt, prepare};
use super::options::{self, Network};
use super::progress::Bar;
use super::{Failure, own, print, print_json, screen};

#[derive(Debug, Args)]
pub(super) struct Lose {
    /// Whose handshake: [NAME=]GROUP/CHAIN[:BYTESB]/transport=quic[/KEY=VALUE...], as `compare` takes it, or a chain with that
    /// key: ml-dsa-65/transport=quic
    #[arg(value_name = "ARM", required = true, value_parser = arguments::named)]
    arms: Vec<Arm>,
    #[command(flatten)]
    chains: arguments::Chains,
    #[command(flatten, next_help_heading = "Network")]
    network: Network,
    /// Where all randomness comes from
    #[arg(long, value_name = "N", default_value = "1", value_parser = options::seed())]
    seed: u64,
    /// How it is told
    #[arg(long, value_name = "NAME", default_value = "text")]
    format: Format,
}

impl Lose {
    pub(super) fn run(self) -> Result<(), Failure> {
        let chains = self.chains;
        let arms: Vec<Arm> = self.arms.iter().map(|arm| chains.of(arm)).collect();
        arguments::check_once(&arms)?;
        if let Some(arm) = arms.iter().find(|arm| arm.transport == TransportName::Tcp) {
            return Err(Failure::Usage(format!(
                "arm {:?} is over TCP, of which no single segment is lost on purpose: add transport=quic, or measure it with \
                 `lastbyte compare --loss 1%`",
                arm.name
            )));
        }
        let experiment = Experiment {
            seed: Seed(self.seed),
            ..Experiment::new(arms, self.cells()?, 1)
        };
        lab::check_quic(&Study::single("lose", experiment.clone())).map_err(Failure::Usage)?;
        own::fetch(&experiment.arms)?;
        let interrupt = interrupt().map_err(Failure::run)?;
        let bar = Bar::new();
        let prepared = prepare(&experiment.arms, &bar)?;
        bar.finish();
        let mut all = Vec::new();
        for cell in &experiment.cells {
            for arm in &prepared {
                let losses = lab::lose(arm, cell, &experiment, &interrupt);
                all.push(losses.ok_or_else(|| Failure::Interrupted("interrupted".to_owned()))?);
            }
        }
        match self.format {
            Format::Text => print(&report::lost::text(&all, screen())),
            Format::Json => print_json(&format!("{:#}", report::lost::json(&all))),
        }
    }

    /// The networks that were asked for, each once: nothing is transferred over them.
    fn cells(&self) -> Result<Vec<Cell>, Failure> {
        let mut cells: Vec<Cell> = Vec::new();
        for cell in self.network.cells().map_err(Failure::Usage)? {
            let cell = Cell {
                link: cell.link.without_luck(),
                data: Bytes(0),
                upload: Bytes(0),
                requests: 1,
                ..cell
            };
            if !cells.contains(&cell) {
                cells.push(cell);
            }
        }
        Ok(cells)
    }
}
