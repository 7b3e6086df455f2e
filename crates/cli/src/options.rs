//! The options that describe networks and arms, and the experiment that they make.

use std::path::Path;
use std::time::Duration;

use clap::builder::{RangedU64ValueParser, TypedValueParser, ValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use lastbyte_link::{Bytes, Seed, UnitError, parse_duration};

use lastbyte::study::{
    Arm, Cell, Choice, Connections, CpuTime, Emulation, Experiment, Lists, NamedNetwork, Parameter,
    Reading,
};

/// Parameters of cells, each an option, and networks by name. Those that take lists make a grid.
#[derive(Debug)]
pub(super) struct Network {
    named: Vec<&'static NamedNetwork>,
    options: Vec<(Parameter, Vec<String>)>,
}

/// The option of networks by name.
const LINK: &str = "link";

impl Args for Network {
    fn augment_args(command: Command) -> Command {
        let command = command.arg(named());
        command.args(Parameter::options().map(|(parameter, option)| {
            let argument = Arg::new(parameter.name())
                .long(parameter.name().replace('_', "-"))
                .value_name(option.value_name)
                .help(option.help)
                .value_parser(value_parser(parameter));
            let argument = match option.lists {
                Lists::Taken => argument.value_delimiter(','),
                Lists::Refused => argument,
            };
            match option.choice {
                Choice::Usual(usual) => argument.default_value(usual),
                Choice::Presets => argument,
            }
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Network::augment_args(command)
    }
}

impl FromArgMatches for Network {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Network, clap::Error> {
        let named = matches.get_many::<&'static NamedNetwork>(LINK);
        let named: Vec<_> = named.into_iter().flatten().copied().collect();
        // A name says what else goes without saying.
        let is_said_by_name = |parameter: Parameter| {
            let mut said = named.iter().flat_map(|network| network.values());
            matches.value_source(parameter.name()) == Some(ValueSource::DefaultValue)
                && said.any(|(said, _)| said == parameter)
        };
        let given = Parameter::options().filter_map(|(parameter, _)| {
            let texts = matches.get_many::<String>(parameter.name())?;
            (!is_said_by_name(parameter)).then(|| (parameter, texts.cloned().collect()))
        });
        Ok(Network {
            options: given.collect(),
            named,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Network::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The option of networks by name, in front of those that have the last word.
fn named() -> Arg {
    let names = NamedNetwork::ALL.map(|network| network.name).join(", ");
    Arg::new(LINK)
        .long(LINK)
        .value_name("NAME")
        .help(format!(
            "Networks by name, for RTT, rate, loss and jitter, each of which has the last word where it is said \
             besides: {names} (docs/networks.md has their values and sources)"
        ))
        .value_delimiter(',')
        .value_parser(NamedNetwork::find)
}

/// Takes what a cell can have.
fn value_parser(parameter: Parameter) -> ValueParser {
    let text = move |text: &str| {
        let set = parameter.set(&mut Cell::default(), text, Path::new(""));
        set.map(|()| text.to_owned())
    };
    match parameter.reading() {
        Reading::Name | Reading::Text | Reading::Ways => text.into(),
        Reading::Whole(range) => RangedU64ValueParser::<u32>::new()
            .range(u64::from(*range.start())..=u64::from(*range.end()))
            .map(|number| number.to_string())
            .into(),
        Reading::Bytes(most) => (move |text: &str| match text.parse::<Bytes>() {
            Ok(bytes) if bytes > *most => Err(format!("ask for {most} or less")),
            Ok(bytes) => Ok(bytes.to_string()),
            Err(error) => Err(error.to_string()),
        })
        .into(),
    }
}

#[derive(Debug, Args)]
pub(super) struct Sampling {
    /// Connections of each arm in each cell, or 'until ±2%': until every interval reaches no further
    /// than 2 % to either side, or two points of an increase
    #[arg(long, value_name = "N", default_value = "200")]
    connections: Connections,
    /// Connections at once, even if they disturb each other [default: as many as don't]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
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
    /// The grid, the last option changing fastest, or why it can't be.
    pub(super) fn cells(&self) -> Result<Vec<Cell>, String> {
        let mut cells = self.networks()?;
        for (parameter, texts) in &self.options {
            check_once(*parameter, texts)?;
            let mut varied = Vec::with_capacity(cells.len() * texts.len());
            for cell in &cells {
                for text in texts {
                    let mut cell = cell.clone();
                    parameter.set(&mut cell, text, Path::new(""))?;
                    varied.push(cell);
                }
            }
            cells = varied;
        }
        cells.iter().try_for_each(Cell::check)?;
        Ok(cells)
    }

    /// A cell of each network that is named, or a usual one.
    fn networks(&self) -> Result<Vec<Cell>, String> {
        if self.named.is_empty() {
            return Ok(vec![Cell::default()]);
        }
        let mut cells: Vec<Cell> = Vec::new();
        for network in &self.named {
            let cell = Cell {
                link: network.link(),
                link_name: Some(network.name.to_owned()),
                ..Cell::default()
            };
            if cells.iter().any(|other| other.link_name == cell.link_name) {
                return Err(format!(
                    "--{LINK}: {:?} is given twice: leave one out",
                    network.name
                ));
            }
            cells.push(cell);
        }
        Ok(cells)
    }

    /// The experiment of these networks and arms, or why there is none.
    pub(super) fn experiment(
        &self,
        arms: Vec<Arm>,
        sampling: &Sampling,
    ) -> Result<Experiment, String> {
        let cells = self.cells()?;
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

/// Whether each of the values of an option is another one: `10ms` is `0.01s`.
fn check_once(parameter: Parameter, texts: &[String]) -> Result<(), String> {
    let mut seen = Vec::new();
    for text in texts {
        let canonical = parameter.canonical(text)?;
        if seen.contains(&canonical) {
            let option = parameter.name().replace('_', "-");
            return Err(format!(
                "--{option}: {text:?} is given twice: leave one out"
            ));
        }
        seen.push(canonical);
    }
    Ok(())
}

fn duration(text: &str) -> Result<Duration, UnitError> {
    parse_duration(text)
}
