//! The options that describe networks and arms, and the experiment that they make.

use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};
use std::ops::RangeInclusive;
use std::path::Path;
use std::str::FromStr;
use std::time::Duration;

use clap::builder::{TypedValueParser, ValueParser};
use clap::parser::ValueSource;
use clap::{Arg, ArgMatches, Args, Command, FromArgMatches};
use lastbyte_link::{Bytes, Seed, format_duration, parse_duration};

use super::Failure;
use super::one_of::one_of;
use lastbyte::study::{
    Arm, Cell, Choice, ClientCpu, CommandLine, Connections, CpuTime, Emulation, Experiment, Lists,
    NamedNetwork, Parameter, Population, QuicIn, Reading, Sessions, StudyFolder, Traffic,
    arms_of_traffic, check_place, check_servers, share_files,
};

/// Parameters of cells, each an option, and networks by name. Those that take lists make a grid.
#[derive(Debug)]
pub(super) struct Network {
    named: Vec<&'static NamedNetwork>,
    mix: Vec<Part>,
    options: Vec<(Parameter, Vec<String>)>,
    /// Which of the options somebody has given, rather than that they go without saying.
    said: Vec<Parameter>,
}

/// The option of networks by name.
const LINK: &str = "link";
/// That of users who have one or another of them.
const MIX: &str = "mix";

/// A network that some users have.
#[derive(Clone, Copy, Debug)]
struct Part {
    network: &'static NamedNetwork,
    /// How many, in proportion to the others'.
    weight: f64,
}

impl FromStr for Part {
    type Err = String;

    fn from_str(text: &str) -> Result<Part, String> {
        let Some((name, weight)) = text.split_once('=') else {
            return Err("write each network with its weight, as in lte=3,fibre=1".to_owned());
        };
        let network = NamedNetwork::find(name).map_err(|error| error.to_string())?;
        match weight.parse() {
            Ok(weight) if weight > 0.0 && f64::is_finite(weight) => Ok(Part { network, weight }),
            _ => Err(format!(
                "{weight:?} is no weight: write a number above 0, as in lte=3,fibre=1"
            )),
        }
    }
}

impl Network {
    /// Networks by name, and parameters that have a value of their own besides: what clap makes of their options.
    pub(super) fn of(named: Vec<&'static NamedNetwork>, said: &[(Parameter, String)]) -> Network {
        let by_name = |parameter: Parameter| {
            let mut values = named.iter().flat_map(|network| network.values());
            values.any(|(said, _)| said == parameter)
        };
        // As options are read: sizes in the greatest unit that has them whole.
        let read = |parameter: Parameter, text: &str| match parameter.reading() {
            Reading::Bytes(_) => text
                .parse::<Bytes>()
                .map_or(text.to_owned(), |bytes| bytes.to_string()),
            Reading::Name | Reading::Text | Reading::Ways | Reading::Files | Reading::Whole(_) => {
                text.to_owned()
            }
        };
        let options = transfers().filter_map(|(parameter, option)| {
            let own = said.iter().find(|(said, _)| *said == parameter);
            let text = match (own, &option.choice) {
                (Some((_, value)), _) => value,
                (None, Choice::Usual(usual)) if !by_name(parameter) => *usual,
                (None, _) => return None,
            };
            Some((parameter, vec![read(parameter, text)]))
        });
        Network {
            options: options.collect(),
            // In the order in which options are read.
            said: transfers()
                .map(|(parameter, _)| parameter)
                .filter(|parameter| said.iter().any(|(one, _)| one == parameter))
                .collect(),
            named,
            mix: Vec::new(),
        }
    }
}

impl Args for Network {
    fn augment_args(command: Command) -> Command {
        let command = command.arg(named()).arg(mix());
        command.args(transfers().map(|(parameter, option)| {
            let argument = argument(parameter, option);
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
        let mix = matches.get_many::<Part>(MIX);
        let mix: Vec<Part> = mix.into_iter().flatten().copied().collect();
        let traffic = matches.get_many::<String>(Parameter::TRAFFIC.name());
        let traffic = traffic.into_iter().flatten();
        // It was read before.
        let traffic = traffic.filter_map(|text| Traffic::read(text, &StudyFolder::HERE).ok());
        let traffic: Vec<Traffic> = traffic.collect();
        let is_default = |parameter: Parameter| {
            matches.value_source(parameter.name()) == Some(ValueSource::DefaultValue)
        };
        // A name says what else goes without saying.
        let is_said_by_name = |parameter: Parameter| {
            let mixed = mix.iter().map(|part| &part.network);
            let mut said = named
                .iter()
                .chain(mixed)
                .flat_map(|network| network.values());
            let is_drawn = traffic.iter().any(|traffic| traffic.draws(parameter));
            is_default(parameter) && (is_drawn || said.any(|(said, _)| said == parameter))
        };
        let given = transfers().filter_map(|(parameter, _)| {
            let texts = matches.get_many::<String>(parameter.name())?;
            (!is_said_by_name(parameter)).then(|| (parameter, texts.cloned().collect()))
        });
        let options: Vec<_> = given.collect();
        let said = options.iter().map(|(parameter, _)| *parameter);
        Ok(Network {
            said: said.filter(|parameter| !is_default(*parameter)).collect(),
            options,
            named,
            mix,
        })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Network::from_arg_matches(matches)?;
        Ok(())
    }
}

/// The options of networks and of what crosses them.
fn transfers() -> impl Iterator<Item = (Parameter, &'static CommandLine)> {
    Parameter::options().filter(|(parameter, _)| !parameter.is_of_pages())
}

/// Those of pages.
fn of_pages() -> impl Iterator<Item = (Parameter, &'static CommandLine)> {
    Parameter::options().filter(|(parameter, _)| parameter.is_of_pages())
}

/// A parameter as an option, without what it is if nothing is said.
fn argument(parameter: Parameter, option: &CommandLine) -> Arg {
    let argument = Arg::new(parameter.name())
        .long(parameter.name().replace('_', "-"))
        .value_name(option.value_name)
        .help(option.help)
        .value_parser(value_parser(parameter));
    match option.lists {
        Lists::Taken => argument.value_delimiter(','),
        Lists::Refused => argument,
    }
}

/// Pages that are loaded in place of transfers, and how. Nothing of that goes without saying: there need be no page.
#[derive(Debug)]
pub(super) struct Pages(Vec<(Parameter, Vec<String>)>);

impl Pages {
    /// None.
    pub(super) fn none() -> Pages {
        Pages(Vec::new())
    }

    /// Whether there are any.
    pub(super) fn are_given(&self) -> bool {
        !self.0.is_empty()
    }
}

impl Args for Pages {
    fn augment_args(command: Command) -> Command {
        let is_of_transfers = |(parameter, _): &(Parameter, _)| parameter.is_of_transfers();
        let transfers = || transfers().filter(is_of_transfers);
        command.args(of_pages().map(|(parameter, option)| {
            let argument = argument(parameter, option);
            // clap lets go of what is required where that conflicts with what is there, so each of them says so itself.
            let argument = argument.conflicts_with_all(transfers().map(|(one, _)| one.name()));
            let (Choice::Usual(usual), false) = (&option.choice, parameter == Parameter::PAGE)
            else {
                return argument;
            };
            argument
                .help(format!("{} [default: {usual}]", option.help))
                .requires(Parameter::PAGE.name())
        }))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Pages::augment_args(command)
    }
}

impl FromArgMatches for Pages {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Pages, clap::Error> {
        let given = of_pages().filter_map(|(parameter, _)| {
            let texts = matches.get_many::<String>(parameter.name())?;
            Some((parameter, texts.cloned().collect()))
        });
        Ok(Pages(given.collect()))
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = Pages::from_arg_matches(matches)?;
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
        .hide_possible_values(true)
        .value_parser(one_of(
            NamedNetwork::ALL.map(|network| network.name),
            NamedNetwork::find,
        ))
}

/// The option of users who have different networks.
fn mix() -> Arg {
    Arg::new(MIX)
        .long(MIX)
        .value_name("NAME=WEIGHT")
        .help("Users of several networks in one population, in these proportions: lte=3,fibre=1")
        .conflicts_with(LINK)
        .value_delimiter(',')
        .value_parser(Part::from_str)
}

/// Takes what a cell can have.
fn value_parser(parameter: Parameter) -> ValueParser {
    let text = move |text: &str| {
        let set = parameter.set(&mut Cell::default(), text, &StudyFolder::HERE);
        set.map(|()| text.to_owned())
    };
    match parameter.reading() {
        Reading::Name | Reading::Text | Reading::Ways | Reading::Files => text.into(),
        Reading::Whole(range) => whole(u64::from(*range.start())..=u64::from(*range.end()))
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

/// Takes a kind of traffic, or a file of one.
pub(super) fn traffic() -> ValueParser {
    value_parser(Parameter::TRAFFIC)
}

/// How a parameter is asked for.
pub(super) fn option(parameter: Parameter) -> String {
    format!("--{}", parameter.name().replace('_', "-"))
}

impl Sampling {
    /// So many connections of each arm in each cell, whose computing is in no time; all else as usual.
    pub(super) fn without_computing(connections: Connections) -> Sampling {
        Sampling {
            connections: Some(connections),
            concurrency: None,
            timeout: Duration::from_secs(300),
            seed: 1,
            cpu: Some(CpuTime::None),
            emulation: Emulation::default(),
            quic_in: QuicIn::default(),
        }
    }
}

#[derive(Debug, Args)]
pub(super) struct Sampling {
    /// Connections of each arm in each cell; 'up to 200', so many where there is luck, and elsewhere until they repeat each
    /// other; or 'until ±2%': until every interval reaches no further than 2 % to either side, or two points of an increase
    /// [default: 'up to 200', and 20 loads of a page]
    #[arg(long, value_name = "N")]
    connections: Option<Connections>,
    /// Connections at once, even if they disturb each other [default: as many as don't]
    #[arg(long, value_name = "N", value_parser = concurrency())]
    concurrency: Option<u32>,
    /// When a connection counts as failed
    #[arg(long, value_name = "TIME", default_value = "300s", value_parser = timeout)]
    timeout: Duration,
    /// Where all randomness comes from
    #[arg(long, value_name = "N", default_value = "1", value_parser = seed())]
    seed: u64,
    /// Where computing is in virtual time: beside the network's time and in their sum (as on this machine), none, or
    /// calibrated (in the clock itself, as on this machine); of pages and server=, as on a laptop, or, of pages, a phone
    /// [default: beside, and laptop for pages and server=]
    #[arg(
        long,
        value_name = "NAME",
        hide_possible_values = true,
        value_parser = one_of(CpuTime::ALL.map(CpuTime::name), CpuTime::from_str)
    )]
    cpu: Option<CpuTime>,
    /// What the virtual engine emulates the link with: netem or link (as the live engine does)
    #[arg(
        long,
        value_name = "NAME",
        default_value = "netem",
        hide_possible_values = true,
        value_parser = one_of(Emulation::ALL.map(Emulation::name), Emulation::from_str)
    )]
    emulation: Emulation,
    /// What carries arms over QUIC in virtual time: model (in this process, without a kernel) or guest (sockets of UDP in
    /// the guest, over the emulated link)
    #[arg(
        long,
        value_name = "NAME",
        default_value = "model",
        hide_possible_values = true,
        value_parser = one_of(QuicIn::ALL.map(QuicIn::name), QuicIn::from_str)
    )]
    pub(super) quic_in: QuicIn,
}

impl Network {
    /// Has pages in place of transfers, if there are any.
    pub(super) fn load(&mut self, pages: &Pages) {
        if pages.are_given() {
            (self.options).retain(|(parameter, _)| !parameter.is_of_transfers());
            self.options.extend(pages.0.iter().cloned());
        }
    }

    /// The grid, the last option changing fastest, or why it can't be.
    pub(super) fn cells(&self) -> Result<Vec<Cell>, String> {
        if !self.mix.is_empty() {
            return Err(format!(
                "--{MIX} is measured, as in `lastbyte compare --{MIX} lte=3,fibre=1`: name one network with --{LINK}"
            ));
        }
        let cells = self.grid()?;
        if let Some(slower) = cells.iter().find(|cell| cell.client_cpu != ClientCpu::THIS) {
            return Err(format!(
                "--client-cpu {}: ends compute in no time here: leave it out, or measure with `lastbyte compare`",
                slower.client_cpu
            ));
        }
        match cells.iter().find_map(|cell| cell.traffic.as_ref()) {
            None => Ok(cells),
            Some(traffic) => Err(format!(
                "--traffic {traffic} is drawn, and so it is measured, as in `lastbyte compare --traffic {traffic}`: say one \
                 size here, with --data and --upload"
            )),
        }
    }

    fn grid(&self) -> Result<Vec<Cell>, String> {
        let mut cells = self.networks()?;
        for (parameter, texts) in &self.options {
            if cells.iter().any(|cell| cell.draws(*parameter)) {
                let option = parameter.name().replace('_', "-");
                return Err(format!(
                    "--{option}: the networks of --{MIX} have their own: leave one out"
                ));
            }
            check_once(*parameter, texts)?;
            let mut varied = Vec::with_capacity(cells.len() * texts.len());
            for cell in &cells {
                for text in texts {
                    let mut cell = cell.clone();
                    let set = parameter.set(&mut cell, text, &StudyFolder::HERE);
                    set.map_err(|error| error.to_string())?;
                    varied.push(cell);
                }
            }
            cells = varied;
        }
        for cell in &mut cells {
            let traffic = cell.traffic.take();
            cell.traffic = traffic.map(|traffic| traffic.beside(self.said.iter().copied()));
        }
        // What is drawn is seen to connection by connection.
        let mut fixed = cells.iter().filter(|cell| cell.traffic.is_none());
        let checked = fixed.try_for_each(Cell::check);
        checked.map_err(|error| error.to_string())?;
        Ok(cells)
    }

    /// A cell of each network that is named, or a usual one.
    fn networks(&self) -> Result<Vec<Cell>, String> {
        if !self.mix.is_empty() {
            return Ok(vec![mixed(&self.mix)?]);
        }
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
        let mut cells = self.grid()?;
        let arms = arms_of_traffic(arms, &cells)?;
        (cells.iter()).try_for_each(|cell| check_rates(cell, sampling.timeout))?;
        for cell in &mut cells {
            let drawn = cell.drawing(cell.population.as_deref());
            let drawn = drawn.map(|population| Population {
                seed: Seed(sampling.seed),
                ..population
            });
            cell.population = drawn.map(Into::into);
        }
        check_shares(&arms, &cells)?;
        share_files(cells.iter_mut())?;
        /// A load takes some seconds of a processor.
        const LOADS: Connections = Connections::Fixed(20);
        const TRANSFERS: Connections = Connections::UpTo(200);
        let has_pages = cells.iter().any(|cell| cell.page.is_some());
        let usual = if has_pages { LOADS } else { TRANSFERS };
        let connections = sampling.connections.unwrap_or(usual);
        let experiment = Experiment {
            concurrency: sampling.concurrency,
            timeout: sampling.timeout,
            seed: Seed(sampling.seed),
            emulation: sampling.emulation,
            quic_in: sampling.quic_in,
            ..Experiment::new(arms, cells, connections)
        };
        let experiment = experiment.with_cpu(sampling.cpu);
        check_place(experiment.quic_in, &experiment.arms).map_err(|problem| problem.to_string())?;
        check_servers(&experiment)?;
        Ok(experiment)
    }
}

/// Whether there is a population for arms of which a share of connections resume.
pub(super) fn check_shares(arms: &[Arm], cells: &[Cell]) -> Result<(), String> {
    let has_population = cells.iter().any(|cell| cell.population.is_some());
    let sharing = |arm: &&Arm| matches!(arm.sessions, Sessions::Share { .. });
    match arms.iter().find(sharing).filter(|_| !has_population) {
        Some(arm) => Err(format!(
            "arm {:?}: a share of connections can resume only in a population: write resume=ticket or resume=no, or \
             ask `lastbyte compare` for one with --{MIX} or --traffic, or a study with [population]",
            arm.name
        )),
        None => Ok(()),
    }
}

/// A cell whose connections draw one of these networks, and are sorted by it.
fn mixed(mix: &[Part]) -> Result<Cell, String> {
    for (index, part) in mix.iter().enumerate() {
        let name = part.network.name;
        if mix
            .iter()
            .take(index)
            .any(|other| other.network.name == name)
        {
            return Err(format!(
                "--{MIX}: {name:?} is given twice: give it one weight"
            ));
        }
    }
    let networks: Vec<_> = mix.iter().map(|part| (part.network, part.weight)).collect();
    let text = NamedNetwork::population(&networks);
    let population =
        Population::parse(&text, Path::new(MIX)).map_err(|error| format!("--{MIX}: {error}"))?;
    let names = (mix.iter()).map(|part| format!("{}={}", part.network.name, part.weight));
    Ok(Cell {
        link_name: Some(names.collect::<Vec<_>>().join(", ")),
        population: Some(population.into()),
        ..Cell::default()
    })
}

/// Whether each of the values of an option is another one: `10ms` is `0.01s`.
fn check_once(parameter: Parameter, texts: &[String]) -> Result<(), String> {
    let mut seen = Vec::new();
    for text in texts {
        let canonical = parameter.canonical(text);
        let canonical = canonical.map_err(|error| error.to_string())?;
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

/// Whether a full packet crosses in the time that a connection has.
fn check_rates(cell: &Cell, timeout: Duration) -> Result<(), String> {
    const PACKET: usize = 1500;
    let rates = [&cell.link.forward, &cell.link.backward].map(|way| way.rate);
    let mut rates = rates.into_iter().flatten();
    match rates.find(|rate| rate.serialisation(PACKET) > timeout) {
        None => Ok(()),
        Some(rate) => Err(format!(
            "--rate: at {rate} a packet of {PACKET} bytes takes {}, and a connection has {} (--timeout): ask for more",
            format_duration(rate.serialisation(PACKET)),
            format_duration(timeout),
        )),
    }
}

/// Takes whole numbers within `range`.
pub(super) fn whole(range: RangeInclusive<u64>) -> impl TypedValueParser<Value = u64> {
    let (least, most) = range.into_inner();
    move |text: &str| {
        let digits = text.strip_prefix('-').unwrap_or(text);
        let is_whole = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
        match text.parse::<u64>() {
            Ok(number) if (least..=most).contains(&number) => Ok(number),
            number if is_whole => Err(match number {
                _ if most < u64::from(u32::MAX) => format!("{text} is not from {least} to {most}"),
                Ok(number) if number < least => {
                    format!("{text} is too little: {least} is the least")
                }
                Err(_) if text.starts_with('-') => {
                    format!("{text} is too little: {least} is the least")
                }
                Ok(_) | Err(_) => format!("{text} is too much: {most} is the most"),
            }),
            _ => Err(format!(
                "no whole number: write one such as {}",
                least.max(10)
            )),
        }
    }
}

fn concurrency() -> impl TypedValueParser<Value = u32> {
    whole(1..=u64::from(u32::MAX)).map(|number| u32::try_from(number).unwrap_or(u32::MAX))
}

/// Takes what a generator can begin with.
pub(super) fn seed() -> impl TypedValueParser<Value = u64> {
    whole(0..=Seed::MOST)
}

/// Takes an address with its port, and says what is missing.
///
/// # Errors
///
/// When it has not both, with how they are written.
pub(super) fn socket_address(text: &str) -> Result<SocketAddr, String> {
    let port = text.strip_prefix(':').unwrap_or(text).parse::<u16>();
    let bare = text.trim_start_matches('[').trim_end_matches(']');
    match (text.parse(), port, bare.parse::<IpAddr>()) {
        (Ok(address), ..) => Ok(address),
        (Err(_), Ok(port), _) => Err(format!("no address: did you mean \"127.0.0.1:{port}\"?")),
        (.., Ok(ip)) => Err(format!(
            "no port: write one such as \"{}\"",
            SocketAddr::new(ip, 8443)
        )),
        _ => Err("write an address and a port, such as \"127.0.0.1:8443\"".to_owned()),
    }
}

/// Why nothing can be served at an address, with what would help.
pub(super) fn cannot_listen(option: &str, address: SocketAddr, error: &io::Error) -> Failure {
    let hint = match error.kind() {
        ErrorKind::AddrInUse => {
            format!(": another program listens there: end it, or name another port with {option}")
        }
        ErrorKind::AddrNotAvailable => {
            format!(": name an address of this machine with {option}, or 0.0.0.0 for all")
        }
        ErrorKind::PermissionDenied => {
            format!(": run as root, or name a port from 1024 up with {option}")
        }
        _ => String::new(),
    };
    Failure::Usage(format!("can't listen on {address}: {error}{hint}"))
}

/// Takes the time that a connection has.
fn timeout(text: &str) -> Result<Duration, String> {
    match parse_duration(text) {
        Ok(Duration::ZERO) => {
            Err("nothing takes no time: give a connection some, such as 300s".to_owned())
        }
        Ok(time) => Ok(time),
        Err(error) => Err(error.to_string()),
    }
}
