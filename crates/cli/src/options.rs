//! The options that describe networks and arms, and the experiment that they make.

use std::path::Path;
use std::time::Duration;

use clap::{Arg, ArgMatches, Args, Command, FromArgMatches, value_parser};
use lastbyte_link::{
    Bytes, Direction, Distribution, Link, Loss, Rate, Seed, UnitError, parse_duration,
};

use lastbyte::study::{
    Arm, Cell, Congestion, Connections, CpuTime, DistributionError, Emulation, Experiment, Gso,
    Hosts, Preset, SETTINGS, Setting, load_distribution,
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
    #[command(flatten)]
    hosts: HostOptions,
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
    /// Bytes that the client sends after the head of its request
    #[arg(
        long,
        value_name = "SIZE",
        value_delimiter = ',',
        default_value = "0KiB",
        value_parser = data
    )]
    upload: Vec<Bytes>,
    /// Requests on each connection, one after the other
    #[arg(long, value_name = "N", value_delimiter = ',', default_value = "1", value_parser = value_parser!(u32).range(1..=1000))]
    requests: Vec<u32>,
    /// How long the client thinks between a response and its next request
    #[arg(long, value_name = "TIME", default_value = "0ms", value_parser = duration)]
    think: Duration,
}

/// Settings of hosts, of which each is an option.
#[derive(Debug)]
struct HostOptions(Vec<(&'static Setting, String)>);

impl Args for HostOptions {
    fn augment_args(command: Command) -> Command {
        command.args(SETTINGS.iter().map(|setting| {
            let read = |text: &str| {
                let mut hosts = Hosts::default();
                (setting.set)(&mut hosts, text).map(|()| text.to_owned())
            };
            Arg::new(setting.name)
                .long(setting.name)
                .value_name(setting.value_name)
                .help(setting.help)
                .value_parser(read)
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        HostOptions::augment_args(command)
    }
}

impl FromArgMatches for HostOptions {
    fn from_arg_matches(matches: &ArgMatches) -> Result<HostOptions, clap::Error> {
        let given = SETTINGS.iter().filter_map(|setting| {
            let text: &String = matches.get_one(setting.name)?;
            Some((setting, text.clone()))
        });
        Ok(HostOptions(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = HostOptions::from_arg_matches(matches)?;
        Ok(())
    }
}

impl HostOptions {
    /// Those of a preset, but for what is given.
    fn of(&self, preset: Preset) -> Hosts {
        let mut hosts = Hosts::of(preset);
        for (setting, text) in &self.0 {
            // It was read before.
            let _ = (setting.set)(&mut hosts, text);
        }
        hosts
    }
}

#[derive(Debug, Args)]
pub(super) struct Sampling {
    /// Connections of each arm in each cell, or 'until ±2%': until every interval reaches no further
    /// than 2 % to either side, or two points of an increase
    #[arg(long, value_name = "N", default_value = "200")]
    connections: Connections,
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
        let each = Direction {
            distribution: self.jitter_distribution.clone(),
            queue: self.queue,
            ..Direction::default()
        };
        let one = Cell {
            hosts: self.hosts.of(self.preset),
            link: Link::symmetric(Duration::ZERO, each),
            client_initcwnd: self.client_initcwnd,
            congestion: self.congestion,
            think: self.think,
            gso: self.gso.unwrap_or(self.preset.gso()),
            preset: self.preset,
            ..Cell::default()
        };
        let directions = |cell: &mut Cell, set: &dyn Fn(&mut Direction)| {
            set(&mut cell.link.forward);
            set(&mut cell.link.backward);
        };
        let cells = vary(vec![one], &self.rtt, |cell, rtt| {
            cell.link = Link::symmetric(rtt, cell.link.forward.clone());
        });
        let cells = vary(cells, &self.rate, |cell, rate| {
            directions(cell, &|direction| direction.rate = Some(rate));
        });
        let cells = vary(cells, &self.loss, |cell, loss| {
            directions(cell, &|direction| direction.loss = loss);
        });
        let cells = vary(cells, &self.jitter, |cell, jitter| {
            directions(cell, &|direction| direction.jitter = jitter);
        });
        let cells = vary(cells, &self.initcwnd, |cell, initcwnd| {
            cell.initcwnd = initcwnd
        });
        let cells = vary(cells, &self.requests, |cell, requests| {
            cell.requests = requests
        });
        let cells = vary(cells, &self.upload, |cell, upload| cell.upload = upload);
        vary(cells, &self.data, |cell, data| cell.data = data)
    }

    /// The experiment of these networks and arms, or why there is none.
    pub(super) fn experiment(
        &self,
        arms: Vec<Arm>,
        sampling: &Sampling,
    ) -> Result<Experiment, String> {
        let cells = self.cells();
        cells.iter().try_for_each(Cell::check)?;
        Ok(Experiment {
            concurrency: sampling.concurrency,
            timeout: sampling.timeout,
            seed: Seed(sampling.seed),
            emulation: sampling.emulation,
            cpu: sampling.cpu,
            ..Experiment::new(arms, cells, sampling.connections)
        })
    }
}

/// Every cell with every value, the values changing fastest.
fn vary<V: Clone>(cells: Vec<Cell>, values: &[V], set: impl Fn(&mut Cell, V)) -> Vec<Cell> {
    let with = |cell: &Cell, value: &V| {
        let mut cell = cell.clone();
        set(&mut cell, value.clone());
        cell
    };
    (cells.iter())
        .flat_map(|cell| values.iter().map(|value| with(cell, value)))
        .collect()
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
