//! The keys of a study file that are no parameters: by them files are read, and `docs/study.md` is written.

use self::Takes::{Name, Names, Words};
use crate::{
    Beside, CpuTime, Emulation, EngineChoice, Leads, Metric, NamedNetwork, Plot, Proof, QuicIn,
};

/// A key of a table.
#[derive(Clone)]
pub(super) struct Key {
    pub(super) name: &'static str,
    pub(super) takes: Takes,
    /// What holds where it is absent.
    pub(super) without: Without,
    /// A value, as it is written.
    pub(super) example: &'static str,
    /// What it says, with its unit.
    pub(super) doc: &'static str,
}

/// What a key takes.
#[derive(Clone)]
pub(super) enum Takes {
    /// What these words say.
    Words(&'static str),
    /// One of these.
    Name(fn() -> Vec<&'static str>),
    /// One of these, or a list of them.
    Names(fn() -> Vec<&'static str>),
}

/// What holds where a key is absent.
#[derive(Clone)]
pub(super) enum Without {
    /// It must be there.
    Must,
    /// This.
    Holds(&'static str),
}

/// Something that is asked of percentiles.
pub(super) struct Word {
    pub(super) name: &'static str,
    pub(super) unit: &'static str,
    pub(super) doc: &'static str,
}

/// The names of keys, in their order.
pub(super) fn names(keys: &[Key]) -> Vec<&'static str> {
    keys.iter().map(|key| key.name).collect()
}

const TEXT: Takes = Words("a text");
const TEXTS: Takes = Words("a text, or a list of them");
const TABLE: Takes = Words("a table");
const TABLES: Takes = Words("tables");
const LIST: Takes = Words("a list");
const SHARE: Takes = Words("a share: `60%`");
const BYTES: Takes = Words("a size up to 1 MiB: `2KB`, `2KiB`, `2000B`");
const PERCENTILES: Takes =
    Words("numbers from 0.1 to 99.9 with at most one decimal, one or a list");

const fn key(
    name: &'static str,
    takes: Takes,
    without: Without,
    example: &'static str,
    doc: &'static str,
) -> Key {
    Key {
        name,
        takes,
        without,
        example,
        doc,
    }
}

/// One that must be there.
const fn must(name: &'static str, takes: Takes, example: &'static str, doc: &'static str) -> Key {
    key(name, takes, Without::Must, example, doc)
}

/// One that may be absent: what holds then stands before its example.
const fn may(
    name: &'static str,
    takes: Takes,
    without: &'static str,
    example: &'static str,
    doc: &'static str,
) -> Key {
    key(name, takes, Without::Holds(without), example, doc)
}

/// Above all tables.
pub(super) const TOP: &[Key] = &[
    may(
        "name",
        TEXT,
        "the file's name without its ending",
        "\"slow links\"",
        "what the study is called",
    ),
    may(
        "question",
        TEXT,
        "what the arms cost",
        "\"Does ML-DSA slow your site?\"",
        "what its page asks, and answers",
    ),
    may(
        "answer",
        Words("a text with places such as `{later}`"),
        "a sentence is made of the results",
        "\"A chain of ML-DSA comes {later} later\"",
        "what the study finds: its page, its picture and the terminal answer with it, each place filled with its \
         `[number.NAME]`, or say which number does not bear it out",
    ),
    may(
        "number",
        TABLES,
        "`answer` must have it",
        "{ later = { measure = \"growth\", arm = \"pq\", what = \"later\" } }",
        "`[number.NAME]` for each place of the answer",
    ),
    may(
        "leads",
        Name(|| Leads::ALL.map(Leads::name).to_vec()),
        "`later`",
        "\"sooner\"",
        "what its page's answer begins with: what comes `later` than the baseline, or `sooner`",
    ),
    may(
        "note",
        TEXT,
        "nothing",
        "\"Chains as a public CA would have them.\"",
        "what readers of its page should know besides",
    ),
    may(
        "percentiles",
        PERCENTILES,
        "`[50, 75, 90]`",
        "[50, 95]",
        "what is told of times",
    ),
    may(
        "engine",
        Name(|| EngineChoice::ALL.map(EngineChoice::name).to_vec()),
        "`auto`",
        "\"virtual\"",
        "what carries the bytes: in real time, in virtual time, or the best that this machine has",
    ),
    may(
        "folder",
        TEXT,
        "that of this file",
        "\".\"",
        "where relative paths begin, seen from the folder of this file",
    ),
    must(
        "arm",
        TABLES,
        "{ classical = { tls = \"secp256r1/rsa-2048\" } }",
        "`[arm.NAME]` for each arm; the first one is the baseline",
    ),
    may(
        "link",
        TABLES,
        "all of it is in cells, or drawn",
        "{ lte-m = { rtt = \"200ms\" } }",
        "`[link.NAME]` for each link",
    ),
    may(
        "population",
        TABLE,
        "nothing is drawn",
        "{ rtt = { median = \"30ms\", p95 = \"120ms\" } }",
        "`[population]`: what each connection draws",
    ),
    must(
        "measure",
        TABLES,
        "[{ id = \"growth\" }]",
        "`[[measure]]` for each part that is measured",
    ),
    may(
        "figure",
        TABLES,
        "figures of all that there is",
        "[{ id = \"fig10\", measure = \"growth\", plot = \"increase\" }]",
        "`[[figure]]` for each figure",
    ),
    may(
        "published",
        TABLES,
        "none",
        "[{ source = \"Table II\", measure = \"growth\", arm = \"pq\", what = \"time\", values = [990, 990, 990] }]",
        "`[[published]]` for numbers of others to set beside ours",
    ),
    may(
        "claim",
        TABLES,
        "none",
        "[{ id = \"small\", text = \"It is small\", check = [{ measure = \"growth\", arm = \"pq\", what = \"increase\", within = \"..10\" }] }]",
        "`[[claim]]` for statements, and what must hold for them",
    ),
    may(
        "search",
        TABLES,
        "none",
        "[{ id = \"edges\", from = \"2KB\", to = \"100KB\", data = \"1KiB\" }]",
        "`[[search]]` for edges: sizes of chains at which a time steps",
    ),
];

/// Above all tables for all, or in a measure for it alone.
pub(super) const SAMPLING: &[Key] = &[
    may(
        "connections",
        Words(
            "a whole number up to 1000000, `\"up to 1000\"`, `\"until ±2%\"` or a table with `until`",
        ),
        "`up to 1000`",
        "\"until ±2%\"",
        "connections of each sample; `up to` so many, but in cells without luck as many as it takes until they repeat each \
         other; or as many as it takes until every interval is so narrow",
    ),
    may(
        "seed",
        Words("a whole number"),
        "1",
        "7",
        "where all randomness comes from",
    ),
    may(
        "timeout",
        Words("a time: `300s`"),
        "`300s`",
        "\"60s\"",
        "when a connection counts as failed",
    ),
    may(
        "concurrency",
        Words("a whole number"),
        "the engine's choice",
        "20",
        "connections at once, at most; of the live engine alone",
    ),
    may(
        "emulation",
        Name(|| Emulation::ALL.map(Emulation::name).to_vec()),
        "`netem`",
        "\"link\"",
        "what emulates the network in virtual time: Linux's netem, or the emulator of the live engine",
    ),
    may(
        "quic_in",
        Name(|| QuicIn::ALL.map(QuicIn::name).to_vec()),
        "`model`",
        "\"guest\"",
        "what carries arms over QUIC in virtual time: a model, which takes no kernel, or the guest, by sockets of UDP over the \
         emulated network",
    ),
    may(
        "cpu",
        Name(|| CpuTime::ALL.map(CpuTime::name).to_vec()),
        "`beside`",
        "\"none\"",
        "computing in virtual time: `beside` the network's times, which stay the same everywhere, and in their sum; none; or \
         in the clock itself. `beside` and `calibrated` are as `lastbyte calibrate` measures them on this machine. `laptop` and \
         `phone` are of browsers and of servers that people run, the same on every machine, and `laptop` is usual there",
    ),
];

/// `connections = { ... }`
pub(super) const UNTIL: &[Key] = &[
    must(
        "until",
        Words("a precision: `±2%`"),
        "\"±2%\"",
        "how far intervals may reach to either side: so many percent of a percentile, so many points of an increase",
    ),
    may(
        "least",
        Words("a whole number up to 1000000"),
        "200",
        "400",
        "connections before the first look; the next ones come after twice as many each time",
    ),
    may(
        "most",
        Words("a whole number up to 1000000"),
        "10000",
        "20000",
        "connections after which it ends, precise or not",
    ),
];

/// `[arm.NAME]`
pub(super) const ARM: &[Key] = &[
    must(
        "tls",
        Words("an arm: `GROUP/CHAIN[:BYTESB][/KEY=VALUE...]`"),
        "\"X25519MLKEM768/ml-dsa-44\"",
        "the TLS configuration, as on the command line: [arms.md](arms.md) has all of it",
    ),
    may(
        "title",
        Words("a text of at most 40 characters, unlike all others'"),
        "its name",
        "\"whole chain\"",
        "what the page and the terminal call it, in tables, legends and sentences; files keep its name",
    ),
    may(
        "about",
        Words("a text of one line, of at most 200 characters"),
        "nothing",
        "\"An intermediate and an end-entity, both of ML-DSA-44\"",
        "what it is, in the page's list of configurations",
    ),
];

/// In a link, before its parameters.
pub(super) const NETWORK: &[Key] = &[may(
    "network",
    Names(|| NamedNetwork::ALL.map(|network| network.name).to_vec()),
    "none",
    "\"lte\"",
    "what [networks.md](networks.md) says of this one, but where other keys of the link say otherwise",
)];

/// In a link, and in its `forward` and `backward`.
pub(super) const DELAY: &[Key] = &[may(
    "delay",
    Words("a time, or a list"),
    "half of `rtt`",
    "\"100ms\"",
    "delay of one direction, in place of `rtt`",
)];

/// In a link.
pub(super) const DIRECTIONS: &[Key] = &[
    may(
        "forward",
        TABLE,
        "as the link",
        "{ rate = \"5mbit\" }",
        "what is different from the client to the server",
    ),
    may(
        "backward",
        TABLE,
        "as the link",
        "{ rate = \"50mbit\" }",
        "what is different from the server to the client",
    ),
];

/// In a link that stands in a cell.
pub(super) const INLINE_LINK: &[Key] = &[may(
    "name",
    TEXT,
    "it has none",
    "\"lte-m\"",
    "what the link is called in results",
)];

/// `[[measure]]`
pub(super) const MEASURE: &[Key] = &[
    must("id", TEXT, "\"growth\"", "its name, unlike all others'"),
    may(
        "arms",
        TEXTS,
        "all, in the order of the file",
        "[\"classical\", \"pq\"]",
        "names of arms, the first of them the baseline",
    ),
    may(
        "links",
        TEXTS,
        "all, in the order of the file",
        "[\"lte-m\"]",
        "names of links",
    ),
    may(
        "cell",
        TABLES,
        "a grid of all lists",
        "[{ link = \"lte-m\", data = \"50KiB\" }]",
        "`[[measure.cell]]` for each cell, in the order in which they are told, where a grid won't do",
    ),
];

/// `[[measure.cell]]`
pub(super) const CELL: &[Key] = &[must(
    "link",
    Words("a text, or a table"),
    "\"lte-m\"",
    "the name of a link, or a table with the keys of one, and the `name` that is told",
)];

/// `[population]`, besides the parameters that can be drawn.
pub(super) const POPULATION: &[Key] = &[
    may(
        "profile",
        TEXT,
        "none",
        "\"profile.toml\"",
        "a file, as `lastbyte zeek` writes it, whose `[population]` holds where this one is silent",
    ),
    may(
        "traffic",
        Words("a kind of traffic, or a file"),
        "none",
        "\"web\"",
        "what connections carry where this table is silent, in all cells that name no `traffic` of their own: [traffic.md](traffic.md)",
    ),
    may(
        "connections_per_user",
        Words("a whole number"),
        "1",
        "5",
        "connections that share what is drawn of the link",
    ),
    may(
        "class",
        Words("a text, or a table with `values` and `weights`"),
        "none",
        "{ values = [\"cdn\", \"other\"], weights = [1, 3] }",
        "what connections are sorted by",
    ),
    may(
        "resumes",
        Words("a share: `60%`, or a table with one for each class"),
        "`0%`",
        "\"46%\"",
        "the share that resumes a session",
    ),
    may(
        "early_data",
        Words("a share: `60%`, or a table with one for each class"),
        "`0%`",
        "\"10%\"",
        "the share of these that sends early data",
    ),
    may(
        "joint",
        Words("a file, a table with columns, or a list of them"),
        "all is drawn apart",
        "{ rtt_ms = [20, 80], weight = [3, 1] }",
        "rows that are drawn whole: CSV or Parquet with columns named as the keys here (bare numbers as `rtt_ms`, \
         `data_bytes`, `rate_bps` or `loss_percent`), `class`, `resumes` and `weight`",
    ),
    may(
        "rtt_share",
        SHARE,
        "`100%`",
        "\"50%\"",
        "what is left of each RTT, as with an edge nearer by",
    ),
    may(
        "resumes_least",
        SHARE,
        "as it is drawn",
        "\"60%\"",
        "whatever says who resumes, so many do at least",
    ),
    may(
        "drawn",
        TABLE,
        "it is drawn",
        "{ first = 0, user = [0, 0, 1] }",
        "draws that are known already: written by Lastbyte, not by you",
    ),
    may(
        "digest",
        TEXT,
        "it is computed",
        "\"00ff\"",
        "SHA-256 of the files that were read, in hex: written by Lastbyte, not by you",
    ),
];

/// A file of a kind of traffic.
pub(super) const TRAFFIC: &[Key] = &[
    must("what", TEXT, "\"pages\"", "what it is"),
    must(
        "population",
        TABLE,
        "{ data = \"1KiB\" }",
        "what connections draw",
    ),
    must(
        "mutual",
        Name(|| Proof::ALL.map(Proof::name).to_vec()),
        "\"no\"",
        "whether clients prove themselves",
    ),
    must("source", TABLES, "{}", "`[source.KEY]` for each key"),
];

/// `[source.KEY]`
pub(super) const SOURCE: &[Key] = &[
    may(
        "published",
        TEXT,
        "nobody",
        "\"WHO, YEAR\"",
        "who has published it",
    ),
    may(
        "stated",
        TEXT,
        "nothing",
        "\"a guess\"",
        "why it is so, where nobody has",
    ),
];

/// What a parameter, or a class, of a population is drawn from.
pub(super) const DISTRIBUTION: &[Key] = &[
    may(
        "values",
        LIST,
        "another of these",
        "[\"10mbit\", \"100mbit\"]",
        "one of these",
    ),
    may(
        "weights",
        Words("numbers from 0 on"),
        "all alike",
        "[1, 3]",
        "how often each value is drawn",
    ),
    may(
        "uniform",
        LIST,
        "another of these",
        "[\"5ms\", \"60ms\"]",
        "from the least to the most",
    ),
    may(
        "median",
        Words("a value"),
        "another of these",
        "\"30ms\"",
        "of a log-normal distribution",
    ),
    may(
        "p95",
        Words("a value"),
        "`median` must have it",
        "\"120ms\"",
        "where 95 of 100 draws are below",
    ),
    may(
        "mean",
        Words("a value"),
        "another of these",
        "\"10ms\"",
        "of an exponential distribution",
    ),
    may(
        "percentiles",
        Words("a table from `p0` to `p100`"),
        "another of these",
        "{ p0 = \"1ms\", p50 = \"20ms\", p100 = \"500ms\" }",
        "straight lines between these",
    ),
    may(
        "least",
        Words("a value"),
        "no bound",
        "\"5ms\"",
        "what is drawn below is this",
    ),
    may(
        "most",
        Words("a value"),
        "no bound",
        "\"500ms\"",
        "what is drawn above is this",
    ),
];

/// `[population.drawn]`
pub(super) const DRAWN: &[&str] = &["first", "user", "class", "session"];

/// `[[figure]]`
pub(super) const FIGURE: &[Key] = &[
    must("id", TEXT, "\"fig10\"", "its name, unlike all others'"),
    may(
        "title",
        TEXT,
        "made of what is drawn",
        "\"Growth\"",
        "what stands above it",
    ),
    must(
        "measure",
        TEXTS,
        "\"growth\"",
        "the measures whose results are drawn",
    ),
    must(
        "plot",
        Name(|| Plot::ALL.map(Plot::name).to_vec()),
        "\"increase\"",
        "what is drawn, see [Plots](#plots)",
    ),
    may(
        "x",
        Words("a parameter"),
        "percentiles stand beside each other",
        "\"data\"",
        "what changes along the horizontal axis",
    ),
    may(
        "facet",
        Words("a parameter, or a list of them"),
        "one panel",
        "\"loss\"",
        "what changes from panel to panel",
    ),
    may(
        "metric",
        Name(|| Metric::ALL.map(Metric::name).to_vec()),
        "`ttlb`",
        "\"handshake\"",
        "the time that is drawn, see [Times](#times)",
    ),
    may("arms", TEXTS, "all", "[\"pq\"]", "the arms that are drawn"),
    may(
        "where",
        WHERE,
        "all cells",
        "{ data = [\"0KiB\", \"50KiB\"] }",
        "the cells that are drawn",
    ),
    may(
        "pool",
        Words("a parameter, or a list of them"),
        "each cell alone",
        "[\"loss\"]",
        "connections that differ in these alone are put together before percentiles are taken",
    ),
    may(
        "percentiles",
        PERCENTILES,
        "those of the study",
        "[50]",
        "the percentiles that are drawn",
    ),
    may(
        "beside",
        Names(|| Beside::ALL.map(Beside::name).to_vec()),
        "nothing",
        "\"arithmetic\"",
        "what is drawn beside a measured increase: what flight arithmetic says, or the rules of thumb of the \
         time-to-last-byte paper's slides",
    ),
];

const WHERE: Takes =
    Words("a table of parameters with a value or a list each, or a list of such tables");

/// What is asked of results, in `[[published]]`, `[[claim.check]]` and `[number.NAME]`.
pub(super) const QUESTION: &[Key] = &[
    must(
        "measure",
        TEXTS,
        "\"growth\"",
        "the measures that are asked",
    ),
    may(
        "where",
        WHERE,
        "all cells",
        "{ data = \"50KiB\", loss = \"0%\" }",
        "which of their cells",
    ),
    must("arm", TEXT, "\"pq\"", "the arm"),
    may(
        "metric",
        Name(|| Metric::ALL.map(Metric::name).to_vec()),
        "`ttlb`",
        "\"handshake\"",
        "the time that is asked for, see [Times](#times)",
    ),
    may(
        "percentiles",
        PERCENTILES,
        "those of the study",
        "[50, 75, 90]",
        "its percentiles",
    ),
    may(
        "pool",
        Words("a parameter, or a list of them"),
        "each cell alone",
        "[\"data\", \"loss\"]",
        "connections that differ in these alone are put together before percentiles are taken",
    ),
    must(
        "what",
        Words("a quantity"),
        "\"increase\"",
        "what is asked, see [Quantities](#quantities)",
    ),
    may(
        "than",
        WHERE,
        "`slowdown` must have it",
        "{ data = \"0KiB\" }",
        "what the other cell has otherwise",
    ),
    may(
        "than_measure",
        TEXTS,
        "as `measure`",
        "\"growth\"",
        "where the other cell is",
    ),
    may(
        "of",
        TEXT,
        "the baseline; `ratio` and `multiple` must have it",
        "\"pq\"",
        "the other arm",
    ),
];

/// `[[published]]`, besides what is asked.
pub(super) const PUBLISHED: &[Key] = &[
    must("source", TEXT, "\"Table II\"", "where it is published"),
    may(
        "figure",
        TEXT,
        "they stand apart",
        "\"fig10\"",
        "the figure that they are set in",
    ),
    may(
        "by",
        Words("a parameter, or a list of them"),
        "`rows` must have it",
        "[\"loss\", \"data\"]",
        "what the first values of each row are",
    ),
    may(
        "rows",
        Words("a list of lists"),
        "there are `values`",
        "[[\"0%\", \"50KiB\", 990, 990, 990]]",
        "values of the parameters in `by`, then a number for each percentile",
    ),
    may(
        "values",
        Words("a list of numbers"),
        "there are `rows`",
        "[990, 990, 990]",
        "a number for each percentile, of one cell or of several that are pooled; in the unit of the quantity",
    ),
    may(
        "within",
        Words("a number"),
        "2",
        "5",
        "how far ours may be off: percent of a time, percentage points of all else",
    ),
    may(
        "cause",
        TEXT,
        "unknown",
        "\"Their server waits for a write\"",
        "why ours differ",
    ),
];

/// `[[claim]]`
pub(super) const CLAIM: &[Key] = &[
    must("id", TEXT, "\"small\"", "its name, unlike all others'"),
    must("text", TEXT, "\"It is small\"", "what is claimed"),
    must(
        "check",
        TABLES,
        "[{ measure = \"growth\", arm = \"pq\", what = \"increase\", within = \"..10\" }]",
        "`[[claim.check]]` for each thing that must hold",
    ),
    may(
        "cause",
        TEXT,
        "unknown",
        "\"Their server waits for a write\"",
        "why it does not hold",
    ),
];

/// `[[claim.check]]`, besides what is asked.
pub(super) const CHECK: &[Key] = &[must(
    "within",
    Words("bounds: `0..5`, `..15`, `20..`"),
    "\"..10\"",
    "where the whole interval of every number must lie, in the unit of the quantity",
)];

/// `[number.NAME]`, besides what is asked.
pub(super) const NUMBER: &[Key] = &[may(
    "within",
    Words("bounds: `0..5`, `..15`, `20..`"),
    "a difference is more than zero",
    "\"..10\"",
    "where the whole interval of every number must lie, in the unit of the quantity; of `..15` the most that it may be \
     is told, of `20..` the least",
)];

/// `[[search]]`
pub(super) const SEARCH: &[Key] = &[
    must("id", TEXT, "\"edges\"", "its name, unlike all others'"),
    may(
        "arms",
        TEXTS,
        "all, in the order of the file",
        "[\"classical\"]",
        "names of arms whose chains are made, without `:BYTESB`",
    ),
    may(
        "links",
        TEXTS,
        "all, in the order of the file",
        "[\"lte-m\"]",
        "names of links",
    ),
    may(
        "metric",
        Name(|| Metric::ALL.map(Metric::name).to_vec()),
        "`ttfb`",
        "\"handshake\"",
        "the time that steps, see [Times](#times)",
    ),
    must(
        "from",
        BYTES,
        "\"2KB\"",
        "bytes of the Certificate message; where the chain is larger, it begins there",
    ),
    must("to", BYTES, "\"100KB\"", "bytes of the largest one"),
    may(
        "sizes",
        Words("a whole number from 2 to 1000"),
        "25",
        "50",
        "how many are looked at first, evenly spread",
    ),
    may(
        "published",
        TABLES,
        "none",
        "[{ source = \"Figure 3\", edges = [\"10KB\", \"40KB\"] }]",
        "`[[search.published]]` for edges that others found",
    ),
];

/// `[[search.published]]`
pub(super) const SEARCH_PUBLISHED: &[Key] = &[
    must("source", TEXT, "\"Figure 3\"", "where they are published"),
    must(
        "edges",
        Words("a size, or a list of them"),
        "[\"10KB\", \"40KB\"]",
        "bytes of the chain at each edge of one server",
    ),
    may(
        "note",
        TEXT,
        "nothing",
        "\"Of one of three servers\"",
        "what else there is to say",
    ),
];

/// What is asked of percentiles, besides the sizes of messages.
pub(super) static QUANTITIES: [Word; 8] = [
    Word {
        name: "time",
        unit: "ms",
        doc: "the time itself",
    },
    Word {
        name: "increase",
        unit: "%",
        doc: "the increase over the baseline",
    },
    Word {
        name: "later",
        unit: "ms",
        doc: "how much later it comes than with the arm `of`, or else with the baseline",
    },
    Word {
        name: "sooner",
        unit: "ms",
        doc: "how much sooner it comes than with the arm `of`, or else with the baseline",
    },
    Word {
        name: "slowdown",
        unit: "%",
        doc: "the increase over the same arm in another cell, that of `than_measure` which is alike but for what \
              `than` names",
    },
    Word {
        name: "authentication",
        unit: "KB (1000 bytes)",
        doc: "the server's Certificate and CertificateVerify messages",
    },
    Word {
        name: "ratio",
        unit: "",
        doc: "the increase over the baseline, as so many times that of the arm `of`",
    },
    Word {
        name: "multiple",
        unit: "",
        doc: "how much larger a chain may be, if all of it grows alike, than what the arm `of` sends whole, until the \
              server's first flight is full",
    },
];
