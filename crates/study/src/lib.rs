//! What to measure: arms, cells and the study file that they are written in.

mod arm;
mod assumption;
mod beside;
mod blocks;
mod cell;
mod chain_profile;
mod client;
mod computing;
mod connections;
mod crowd;
mod delivery;
mod distribution;
pub mod exchange;
mod figure;
pub mod file;
mod headline;
mod hosts;
mod legend;
mod metric;
mod networks;
mod page;
mod parameter;
mod population;
mod question;
mod quic;
mod quoted;
pub mod row;
pub mod search;
mod server;
mod settings;
pub mod table_file;
#[cfg(test)]
mod tests;
mod trace;
mod traffic;
mod transport;
mod value;

pub use arm::{ArmError, ArmProblem, NoKeys, Settings};
pub use arm::{Key as ArmKey, MOST_TICKETS};
pub use assumption::{Assumption, IN_PIECES, assumptions};
pub use beside::{NamedFile, StudyFolder};
pub use blocks::{BlockId, Size};
pub use cell::{CellError, Work, common, distinctions};
pub use chain_profile::{ChainProfile, ProfiledKey};
pub use client::Client;
pub use computing::{ClientCpu, Costs, Device, Profile, UnknownClientCpu};
pub use connections::{Connections, ConnectionsError, Precision, PrecisionError, Until};
pub use crowd::{CrossFlow, CrossTraffic, CrossWay, Crowd};
pub use delivery::{
    Abridged, COMPRESSED_WITHIN, Compressed, Cosigners, Delivery, DeliveryProblem, DnsCache,
    Elided, EndEntity, Form, Hello, Mismatch, Mtc, MtcPath, MtcProblem, OtherStack, PqtlsAd,
    check_comparison,
};
pub use delivery::{Certificates, Lengths, OnWire};
pub use distribution::{DistributionError, load_distribution};
pub use figure::{Beside, Figure, Plot};
pub use file::{NoBounds, StudyError, StudyProblem};
pub use headline::{Bearing, Headline, Piece, Place};
pub use hosts::{Buffers, Ecn, Hosts, Mtu, ReceiveBuffer, Timestamps, Tso, Writes};
pub use lastbyte_link::UnknownName;
pub use legend::Legend;
pub use metric::{Metric, NoPercentile, Percentile};
pub use networks::NamedNetwork;
pub use page::{Cache, Har, PageSource, check_servers};
pub use parameter::{
    Choice, Column as ParameterColumn, CommandLine, Filter, Lists, Parameter, Reading,
    Value as ParameterValue, varying,
};
pub use population::{
    ByClass, Distribution as PopulationDistribution, Draw, Joint, Listed, Population, Sessions,
    Shape, Shares, Weighted,
};
pub use question::{Bounds, Check, Claim, MessageSize, Published, Quantity, Question};
pub use question::{Direction, Distance};
pub use quic::{MtuDiscovery, NotOverQuic, Quic};
pub use quoted::quoted;
pub use search::{PublishedEdges, Search};
pub use server::Server;
pub use settings::{
    Congestion, CpuTime, Emulation, EngineChoice, EngineName, Gso, Leads, Preset, QuicIn,
    TransportName, is_modelled,
};
pub use trace::TraceFileError;
pub use traffic::{
    Fact, Kind, Proof, Traffic, TrafficError, arms_of_traffic, line_of_traffic, note_of_traffic,
    share_files,
};
pub use transport::{NoSuchTime, NobodyHas, check_metric, check_place, check_transports};
pub use value::{HostsError, PageError, ParameterError, SizeError, ValueError};

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

pub use lastbyte_exchange::AddressValidation;
use lastbyte_link::{Bytes, Link, Seed, named};
use lastbyte_sizes::{ChainSpec, Group, PemFiles, Resumption, StackName};

/// One TLS configuration under comparison.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Arm {
    /// What it is called: its name in the study, else its label.
    pub name: String,
    /// As it was written: `GROUP/CHAIN[:BYTESB][/KEY=VALUE...]`. It is made of what the arm says, and never read.
    pub label: String,
    /// What it says: its chain, and keys with their values.
    pub settings: Settings,
    /// Key-exchange group.
    pub group: Group,
    /// Where its chain comes from.
    pub chain: ArmChain,
    /// How responses and the bodies of requests are cut into records.
    pub record_size: RecordSize,
    /// The client's TLS implementation.
    pub client_stack: StackName,
    /// The server's TLS implementation.
    pub server_stack: StackName,
    /// What the client sends key shares for; `group` unless something else is said.
    pub key_shares: Vec<Group>,
    /// Where the client's chain comes from, if the server asks for one.
    pub client_chain: Option<ArmChain>,
    /// Whether the client resumes a session that it got beforehand, where nothing else is drawn.
    pub resumption: Resumption,
    /// Which clients of a population do.
    pub sessions: Sessions,
    /// Session tickets that the server sends.
    pub tickets: u8,
    /// Bytes of the largest Certificate message that either side takes, if it is not the most that
    /// the implementation can take.
    pub max_cert_list: Option<usize>,
    /// What leaves in one `write`.
    pub flush: Flush,
    /// The first part of the ClientHello that leaves in a `write` of its own, in bytes.
    pub client_hello_split: Option<u16>,
    /// How the client gets the server's chain.
    pub delivery: Delivery,
    /// Whose server it is.
    pub server: Server,
    /// Whose client it is.
    pub client: Client,
    /// What carries its connections.
    pub transport: TransportName,
    /// How a server knows its client's address before the handshake shows it, over QUIC.
    pub address_validation: Option<AddressValidation>,
    /// How many times what has come a server sends over QUIC before it knows its client's address, if that is not the
    /// server's own.
    pub amplification: Option<u8>,
}

impl Arm {
    /// One whose other options are as usual, before it says anything.
    fn bare(group: Group, chain: ArmChain) -> Self {
        Self {
            name: String::new(),
            label: String::new(),
            settings: Settings::default(),
            group,
            chain,
            record_size: RecordSize::default(),
            client_stack: StackName::default(),
            server_stack: StackName::default(),
            key_shares: vec![group],
            client_chain: None,
            resumption: Resumption::default(),
            sessions: Sessions::default(),
            tickets: 0,
            max_cert_list: None,
            flush: Flush::default(),
            client_hello_split: None,
            delivery: Delivery::Full,
            server: Server::default(),
            client: Client::default(),
            transport: TransportName::default(),
            address_validation: None,
            amplification: None,
        }
    }
}

/// What an end of a connection gives to its socket in one `write`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Flush {
    /// All that the TLS implementation has to send at one moment, so that its own buffers don't
    /// decide the segments.
    #[default]
    Whole,
    /// What the implementation gives to its socket in one call.
    Native,
}

named!(Flush, "flush", { Whole => "whole", Native => "native" });

/// Where an arm's chain comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ArmChain {
    /// Made once and kept.
    Made(ChainSpec),
    /// The user's own files.
    Pem(PemFiles),
}

/// How a response is cut into TLS records.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RecordSize {
    /// The first record fits one segment, later ones hold 16 KiB, as large sites do.
    #[default]
    FirstSegment,
    /// Every record holds at most this many bytes (1 to 16384).
    Fixed(u16),
}

/// link x initcwnd x transfer size. Every arm is measured in every cell.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cell {
    /// The network.
    pub link: Link,
    /// What the study or the command line calls its link. All links of one grid have one name.
    pub link_name: Option<String>,
    /// The server's initial congestion window, in segments.
    pub initcwnd: u32,
    /// The client's initial congestion window, in segments.
    pub client_initcwnd: u32,
    /// Congestion control of both ends.
    pub congestion: Congestion,
    /// Payload of each response.
    pub data: Bytes,
    /// Body of each request.
    pub upload: Bytes,
    /// Requests on the connection, one after the other. Without data in either direction, there is
    /// none.
    pub requests: u32,
    /// From the end of a response to the next request.
    pub think: Duration,
    /// What the link sees of the senders' super-packets.
    pub gso: Gso,
    /// All other settings of the network and of TCP.
    pub preset: Preset,
    /// How both hosts are set.
    pub hosts: Hosts,
    /// How both ends of QUIC are set.
    pub quic: Quic,
    /// What else is on the link.
    pub crowd: Crowd,
    /// The page that a browser loads, in place of a transfer.
    pub page: Option<PageSource>,
    /// How many origins the page has, if a model makes it.
    pub origins: u32,
    /// What the browser has of the page from before.
    pub cache: Cache,
    /// How many times longer the page's tasks take to compute than here.
    pub cpu_slowdown: u32,
    /// What clients of transfers compute on.
    pub client_cpu: ClientCpu,
    /// What connections carry, if a kind of traffic says so: part of what they draw.
    pub traffic: Option<Traffic>,
    /// What connections draw, in place of what the cell has of that.
    pub population: Option<Arc<Population>>,
}

impl Cell {
    /// A link that neither delays nor loses, Linux's own windows, no data, and what goes with a preset.
    pub fn of(preset: Preset) -> Cell {
        Cell {
            link: Link::default(),
            link_name: None,
            initcwnd: 10,
            client_initcwnd: 10,
            congestion: Congestion::default(),
            data: Bytes(0),
            upload: Bytes(0),
            requests: 1,
            think: Duration::ZERO,
            gso: preset.gso(),
            preset,
            hosts: Hosts::of(preset),
            quic: Quic::default(),
            crowd: Crowd::default(),
            page: None,
            origins: 1,
            cache: Cache::default(),
            cpu_slowdown: 1,
            client_cpu: ClientCpu::THIS,
            traffic: None,
            population: None,
        }
    }
}

impl Default for Cell {
    fn default() -> Cell {
        Cell::of(Preset::default())
    }
}

/// What to measure, over which networks, drawn as which figures.
#[derive(Clone, Debug, PartialEq)]
pub struct Study {
    /// Its name, in every row.
    pub name: String,
    /// What its page asks.
    pub question: Option<String>,
    /// What it finds, in its author's words; a sentence is made of the results if it is absent.
    pub answer: Option<Headline>,
    /// What the answer of its page begins with.
    pub leads: Leads,
    /// What readers of its page should know besides.
    pub note: Option<String>,
    /// The file that it was read from; empty for one that was not.
    pub path: PathBuf,
    /// The file as it was read.
    pub text: String,
    /// What its page calls arms, and says about them: of those that have any of it.
    pub legends: Vec<Legend>,
    /// What it measures, in the order of the file.
    pub measures: Vec<Measure>,
    /// The percentiles that are reported.
    pub percentiles: Vec<Percentile>,
    /// The engine that it asks for.
    pub engine: EngineChoice,
    /// How its results are drawn, in the order of the file.
    pub figures: Vec<Figure>,
    /// Published numbers to set beside the results, in the order of the file.
    pub published: Vec<Published>,
    /// Published statements to check, in the order of the file.
    pub claims: Vec<Claim>,
    /// Where edges are searched, in the order of the file.
    pub searches: Vec<Search>,
    /// Where relative paths in it begin.
    pub folder: PathBuf,
}

/// A part of a study: some arms over some networks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Measure {
    /// Its name, unique in the study.
    pub id: String,
    /// What is measured.
    pub experiment: Experiment,
}

/// Arms, cells and how many connections: all that an engine needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Experiment {
    /// The arms; the first is the baseline.
    pub arms: Vec<Arm>,
    /// The cells, in the order in which they are reported.
    pub cells: Vec<Cell>,
    /// Connections of each sample.
    pub connections: Connections,
    /// Connections at once, or the engine's choice: as many as don't disturb each other.
    pub concurrency: Option<u32>,
    /// When a connection counts as failed.
    pub timeout: Duration,
    /// Where all randomness comes from.
    pub seed: Seed,
    /// What the virtual engine emulates the link with.
    pub emulation: Emulation,
    /// What carries arms over QUIC where the virtual engine measures.
    pub quic_in: QuicIn,
    /// Where computing is in what the virtual engine tells.
    pub cpu: CpuTime,
}

impl Study {
    /// Characters of a name, of a study, an arm or a measure, at most: file systems take 255 bytes, of which we need some.
    pub const LONGEST_NAME: usize = 100;
}

impl Experiment {
    /// Its cells that load no page.
    pub fn transfers(&self) -> Vec<Cell> {
        let cells = self.cells.iter();
        cells.filter(|cell| cell.page.is_none()).cloned().collect()
    }

    /// Whether pages are loaded in it, and nothing else.
    pub fn has_pages(&self) -> bool {
        self.cells.iter().any(|cell| cell.page.is_some())
    }

    /// One with the usual timeout of 300 s and seed 1, and all else the engine's choice.
    pub fn new(arms: Vec<Arm>, cells: Vec<Cell>, connections: impl Into<Connections>) -> Self {
        Self {
            arms,
            cells,
            connections: connections.into(),
            concurrency: None,
            timeout: Duration::from_secs(300),
            seed: Seed(1),
            emulation: Emulation::default(),
            quic_in: QuicIn::default(),
            cpu: CpuTime::default(),
        }
    }
}
