//! The options that describe networks and arms, and the experiment that they make.

use std::path::Path;
use std::time::Duration;

use clap::{Args, value_parser};
use lastbyte_link::{
    Bytes, Direction, Distribution, Link, Loss, Rate, Seed, UnitError, parse_duration,
};

use crate::study::{
    Arm, Cell, Congestion, CpuTime, DistributionError, Emulation, Experiment, Gso, Preset,
    load_distribution,
};

/// Options that take lists make a grid.
#[derive(Debug, Args)]
pub(super) struct Network {
    /// Round-trip time, half of it in each direction. Lists make a grid: 35ms,70ms; also for
    /// rate, loss, jitter, initcwnd and data
    #[arg(long, value_name = "TIME", value_delimiter = ',', default_value = "35ms", value_parser = duration)]
    rtt: Vec<Duration>,
    /// Rate of each direction
    #[arg(
        long,
        value_name = "RATE",
        value_delimiter = ',',
        default_value = "1gbit"
    )]
    rate: Vec<Rate>,
    /// Share of packets that each direction loses; in bursts with gemodel:P[/R[/1-H[/1-K]]], as tc
    /// has it: gemodel:1%/10%
    #[arg(long, value_name = "LOSS", value_delimiter = ',', default_value = "0%")]
    loss: Vec<Loss>,
    /// Jitter of each direction
    #[arg(long, value_name = "TIME", value_delimiter = ',', default_value = "0ms", value_parser = duration)]
    jitter: Vec<Duration>,
    /// How jitter is distributed: uniform (within +-TIME), normal (TIME is the deviation), pareto,
    /// paretonormal, or as in a file: tc's FILE.dist, or measured delays, one on a line, in
    /// FILE.csv or FILE.txt
    #[arg(
        long,
        value_name = "NAME|FILE",
        default_value = "normal",
        value_parser = distribution
    )]
    jitter_distribution: Distribution,
    /// Packets that each direction holds, those under way included
    #[arg(long, value_name = "PACKETS", default_value = "1000", value_parser = value_parser!(u32).range(1..))]
    queue: u32,
    /// The server's initial congestion window, in segments
    #[arg(long, value_name = "SEGMENTS", value_delimiter = ',', default_value = "10", value_parser = value_parser!(u32).range(1..=1000))]
    initcwnd: Vec<u32>,
    /// The client's initial congestion window, in segments
    #[arg(long, value_name = "SEGMENTS", default_value = "10", value_parser = value_parser!(u32).range(1..=1000))]
    client_initcwnd: u32,
    /// Congestion control of both ends: cubic, reno or bbr
    #[arg(long, value_name = "NAME", default_value = "cubic")]
    congestion: Congestion,
    /// Whether the link sees TCP's super-packets: off or on [default: off, or the preset's]
    #[arg(long, value_name = "OFF|ON")]
    gso: Option<Gso>,
    /// A named set of link, socket and TCP settings: network or published-2024
    #[arg(long, value_name = "NAME", default_value = "network")]
    preset: Preset,
    /// Bytes that the server answers
    #[arg(
        long,
        value_name = "SIZE",
        value_delimiter = ',',
        default_value = "0KiB,50KiB,200KiB",
        value_parser = data
    )]
    data: Vec<Bytes>,
}

#[derive(Debug, Args)]
pub(super) struct Sampling {
    /// Connections of each arm in each cell
    #[arg(long, value_name = "N", default_value = "200", value_parser = value_parser!(u32).range(1..=1_000_000))]
    connections: u32,
    /// Connections at once, even if they disturb each other [default: as many as don't]
    #[arg(long, value_name = "N", value_parser = value_parser!(u32).range(1..))]
    concurrency: Option<u32>,
    /// When a connection counts as failed
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = duration)]
    timeout: Duration,
    /// Where all randomness comes from
    #[arg(long, value_name = "N", default_value = "1")]
    seed: u64,
    /// CPU time in the virtual engine's clock: none or calibrated (as on this machine)
    #[arg(long, value_name = "NAME", default_value = "none")]
    cpu: CpuTime,
    /// What the virtual engine emulates the link with: netem or link (as the live engine does)
    #[arg(long, value_name = "NAME", default_value = "netem")]
    emulation: Emulation,
}

impl Network {
    /// The grid, the transfer size changing fastest.
    fn cells(&self) -> Vec<Cell> {
        let mut cells = Vec::new();
        for &rtt in &self.rtt {
            for &rate in &self.rate {
                for &loss in &self.loss {
                    for &jitter in &self.jitter {
                        let link = Link::symmetric(
                            rtt,
                            Direction {
                                jitter,
                                distribution: self.jitter_distribution.clone(),
                                loss,
                                rate: Some(rate),
                                queue: self.queue,
                                ..Direction::default()
                            },
                        );
                        for &initcwnd in &self.initcwnd {
                            cells.extend(self.data.iter().map(|&data| Cell {
                                link: link.clone(),
                                initcwnd,
                                client_initcwnd: self.client_initcwnd,
                                congestion: self.congestion,
                                data,
                                gso: self.gso.unwrap_or(self.preset.gso()),
                                preset: self.preset,
                                ..Cell::default()
                            }));
                        }
                    }
                }
            }
        }
        cells
    }

    /// The experiment of these networks and arms.
    pub(super) fn experiment(&self, arms: Vec<Arm>, sampling: &Sampling) -> Experiment {
        Experiment {
            concurrency: sampling.concurrency,
            timeout: sampling.timeout,
            seed: Seed(sampling.seed),
            emulation: sampling.emulation,
            cpu: sampling.cpu,
            ..Experiment::new(arms, self.cells(), sampling.connections)
        }
    }
}

fn duration(text: &str) -> Result<Duration, UnitError> {
    parse_duration(text)
}

fn distribution(text: &str) -> Result<Distribution, DistributionError> {
    load_distribution(text, Path::new(""))
}

/// Flight arithmetic goes through a response segment by segment.
fn data(text: &str) -> Result<Bytes, String> {
    const MOST: Bytes = Bytes(1 << 30);
    match text.parse() {
        Ok(data) if data > MOST => Err(format!("ask for {MOST} or less")),
        Ok(data) => Ok(data),
        Err(error) => Err(UnitError::to_string(&error)),
    }
}
