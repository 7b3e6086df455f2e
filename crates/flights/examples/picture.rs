//! Draws where the extra round trip of a post-quantum handshake comes from, as an SVG.
//!
//! ```text
//! cargo run --release -p lastbyte-flights --example picture > docs/flights.svg
//! ```
//!
//! All times, segments and bytes in it are those of [`timeline`].

use std::io::{self, Write};
use std::time::Duration;

use lastbyte_exchange::{Exchange, HandshakeFlight, Records, Requests, Transfer};
use lastbyte_flights::{Flight as Sent, Path, Timeline, timeline};
use lastbyte_link::{Direction, Link, Rate, Side};
use lastbyte_sizes::framing::{self, CHANGE_CIPHER_SPEC, RECORD_HEADER, RECORD_OVERHEAD};

const TITLE: &str = "Where the extra round trip of post-quantum TLS comes from";
const RTT: Duration = Duration::from_millis(35);
const INITCWND: u32 = 10;
const DATA_KIB: usize = 50;
/// A response that fits one flight in both arms.
const SMALL_DATA_KIB: usize = 10;

/// The sizes of its handshake messages in bytes, their 4-byte headers included.
struct Arm {
    name: &'static str,
    client_hello: usize,
    /// ServerHello, EncryptedExtensions, Certificate, CertificateVerify and Finished.
    server: [usize; 5],
}

const CLASSICAL: Arm = Arm {
    name: "secp256r1/rsa-2048",
    client_hello: 266,
    server: [155, 6, 2162, 264, FINISHED],
};

const POST_QUANTUM: Arm = Arm {
    name: "SecP256r1MLKEM768/ml-dsa-65",
    client_hello: 1444,
    server: [1243, 6, 11_620, 3317, FINISHED],
};

/// With SHA-384.
const FINISHED: usize = framing::finished(48);
const REQUEST: usize = 59;

impl Arm {
    /// As OpenSSL sends them: each message a record of its own, all but the hellos encrypted. Each end sends a
    /// change_cipher_spec.
    fn timeline(&self, data_kib: usize, path: &Path) -> Timeline {
        let server: usize = self.server.iter().sum();
        let mut exchange = Exchange {
            requests: Some(Box::new(Requests {
                first: Some(Transfer::of_records(REQUEST, Records::whole())),
                ..Requests::default()
            })),
            response: Some(Transfer::of_records(data_kib * 1024, Records::default())),
            ..Exchange::default()
        };
        for (flight, bytes) in [
            (
                HandshakeFlight::ClientHello,
                RECORD_HEADER + self.client_hello,
            ),
            (
                HandshakeFlight::Server,
                server + RECORD_HEADER + CHANGE_CIPHER_SPEC + 4 * RECORD_OVERHEAD,
            ),
            (
                HandshakeFlight::ClientFinish,
                CHANGE_CIPHER_SPEC + FINISHED + RECORD_OVERHEAD,
            ),
        ] {
            exchange.handshake.see(flight, u32::try_from(bytes).ok());
        }
        timeline(&exchange, path)
    }
}

fn main() -> io::Result<()> {
    let direction = Direction {
        rate: Rate::from_bits_per_second(1_000_000_000),
        ..Direction::default()
    };
    let path = Path {
        link: Link::symmetric(RTT, direction),
        server_initcwnd: INITCWND,
        ..Path::default()
    };
    let timelines = |data_kib| [CLASSICAL, POST_QUANTUM].map(|arm| arm.timeline(data_kib, &path));
    let arms = timelines(DATA_KIB);
    let mut svg = Svg::default();
    svg.captions(&arms, &timelines(SMALL_DATA_KIB));
    svg.ladder(14.0, CLASSICAL.name, &arms[0]);
    svg.ladder(464.0, POST_QUANTUM.name, &arms[1]);
    io::stdout().write_all(svg.document().as_bytes())
}

/// The flights of each of [`MESSAGES`].
fn messages(timeline: &Timeline) -> Vec<&[Sent]> {
    let same_sender = |flight: &Sent, next: &Sent| flight.sender == next.sender;
    timeline.flights.chunk_by(same_sender).collect()
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

const WIDTH: f64 = 920.0;
const HEIGHT: f64 = 764.0;
const MARGIN: f64 = 28.0;
/// Where time 0 is.
const TOP: f64 = 164.0;
const PER_MILLISECOND: f64 = 2.7;
/// From the left edge of a ladder to the lines of its two ends.
const CLIENT: f64 = 146.0;
const SERVER: f64 = 280.0;
const LINE_HEIGHT: f64 = 18.0;
/// From one segment's square to the next.
const SQUARE: f64 = 9.0;
const SQUARES_A_ROW: u32 = 12;

const INK: &str = "#1f2328";
const GREY: &str = "#656d76";
const HANDSHAKE: &str = "#0072b2";
const RESPONSE: &str = "#d55e00";

/// What the ends write, in turn.
const MESSAGES: [(&str, &str); 4] = [
    ("ClientHello", HANDSHAKE),
    ("ServerHello … Finished", HANDSHAKE),
    ("Finished, request", RESPONSE),
    ("response", RESPONSE),
];

fn y(time: Duration) -> f64 {
    milliseconds(time) * PER_MILLISECOND
}

/// The elements drawn so far. A ladder has coordinates of its own, with time 0 at the top.
#[derive(Default)]
struct Svg(String);

impl Svg {
    fn document(self) -> String {
        format!(
            r##"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" width="100%" role="img">
<title>{TITLE}</title>
<style>
text {{ font: 13px -apple-system, BlinkMacSystemFont, "Segoe UI", "Noto Sans", Helvetica, Arial, sans-serif; fill: {INK} }}
.title {{ font-size: 20px }} .bold {{ font-weight: 600 }} .grey {{ fill: {GREY} }} .blue {{ fill: {HANDSHAKE} }}
.middle {{ text-anchor: middle }} .end {{ text-anchor: end }}
</style>
<rect width="{WIDTH}" height="{HEIGHT}" rx="10" fill="#fff"/>
{}</svg>
"##,
            self.0
        )
    }

    fn captions(&mut self, timelines: &[Timeline; 2], small: &[Timeline; 2]) {
        let [classical, post_quantum] = timelines.each_ref().map(|timeline| {
            let ttfb = timeline.ttfb.unwrap_or_default();
            [timeline.handshake, ttfb, timeline.ttlb].map(milliseconds)
        });
        let [handshake, ttfb, ttlb] = [0, 1, 2].map(|time| post_quantum[time] - classical[time]);
        let increases = format!(
            "Handshake {handshake:+.1} ms, first byte {ttfb:+.1} ms, last byte of {DATA_KIB} KiB {ttlb:+.1} ms."
        );
        let network = format!(
            "{} ms round-trip time, 1 Gbit/s, initial window of {INITCWND} segments. Computed, not measured: no loss, no CPU time.",
            RTT.as_millis()
        );
        self.text("title bold", MARGIN, 42.0, TITLE);
        self.text("bold", MARGIN, 68.0, &increases);
        self.text("grey", MARGIN, 88.0, &network);

        let [classical, post_quantum] = timelines.each_ref().map(messages);
        let all: u32 = post_quantum[1].iter().map(|flight| flight.segments).sum();
        let now = post_quantum[1][0].segments;
        let explanation = format!(
            "The server's handshake takes {all} segments. The initial window lets {now} go; the other {} wait for an acknowledgement.\n\
             Once acknowledged, the {all} open the window to {} for the response: {DATA_KIB} KiB take {} flights instead of {}.\n\
             {SMALL_DATA_KIB} KiB take one flight either way: their last byte comes at {:.1} ms instead of {:.1} ms.",
            all - now,
            post_quantum[3][0].cwnd,
            post_quantum[3].len(),
            classical[3].len(),
            milliseconds(small[1].ttlb),
            milliseconds(small[0].ttlb),
        );
        self.text("", MARGIN, 704.0, &explanation);
    }

    fn ladder(&mut self, left: f64, arm: &str, timeline: &Timeline) {
        let connect = timeline.connect.unwrap_or_default();
        let (handshake, ttlb) = (timeline.handshake, timeline.ttlb);
        self.0 += &format!("<g transform=\"translate({left} {TOP})\">\n");
        self.text("bold middle", (CLIENT + SERVER) / 2.0, -40.0, arm);
        self.text("grey middle", CLIENT, -15.0, "client");
        self.text("grey middle", SERVER, -15.0, "server");
        let messages = messages(timeline);
        for flight in messages[1].iter().skip(1) {
            self.extra_round_trip(flight);
        }
        self.line(SERVER, 2, [Duration::ZERO, ttlb], GREY);
        self.line(CLIENT, 6, [Duration::ZERO, connect], GREY);
        self.line(CLIENT, 6, [connect, handshake], HANDSHAKE);
        self.line(CLIENT, 6, [handshake, ttlb], RESPONSE);
        self.arrow(Side::Client, Duration::ZERO, GREY, "none");
        self.note(Side::Client, 0.0, "grey", "SYN");
        self.arrow(Side::Server, connect / 2, GREY, "none");
        self.note(Side::Server, y(connect / 2), "grey", "SYN-ACK");
        for ((name, colour), flights) in MESSAGES.into_iter().zip(messages) {
            self.message(name, colour, flights);
        }
        for (name, time) in [
            ("connect", connect),
            ("handshake", handshake),
            ("first byte", timeline.ttfb.unwrap_or_default()),
            ("last byte", ttlb),
        ] {
            let (y, milestone) = (y(time), format!("{name}\n{:.1} ms", milliseconds(time)));
            self.note(Side::Client, y, "bold", &milestone);
            self.0 += &format!(
                "<circle cx=\"{CLIENT}\" cy=\"{y:.1}\" r=\"5\" fill=\"#fff\" stroke=\"{INK}\" stroke-width=\"2\"/>\n"
            );
        }
        self.0 += "</g>\n";
    }

    /// From the acknowledgement that `flight` waits for to its arrival.
    fn extra_round_trip(&mut self, flight: &Sent) {
        let (top, width, height) = (y(flight.start - RTT / 2), SERVER - CLIENT, y(RTT));
        self.0 += &format!(
            "<rect x=\"{CLIENT}\" y=\"{top:.1}\" width=\"{width}\" height=\"{height}\" fill=\"{HANDSHAKE}\" fill-opacity=\"0.15\"/>\n"
        );
        self.note(Side::Client, top, "grey", "acknowledgements");
        let (x, baseline) = (CLIENT + 9.0, y(flight.start) - 7.0);
        self.text("bold blue", x, baseline, "one extra\nround trip");
    }

    /// With a square for each segment, an empty one while it must wait.
    fn message(&mut self, name: &str, colour: &str, flights: &[Sent]) {
        let bytes: usize = flights.iter().map(|flight| flight.bytes).sum();
        let mut waiting: u32 = flights.iter().map(|flight| flight.segments).sum();
        let plural = if waiting == 1 { "" } else { "s" };
        let size = format!("{bytes} B, {waiting} segment{plural}");
        for (index, flight) in flights.iter().enumerate() {
            let (start, now) = (flight.start, flight.segments);
            waiting -= now;
            let note = match (index, waiting) {
                (0, 0) => format!("{name}\n{size}"),
                (0, _) => format!("{name}\n{size}:\n{now} now, {waiting} must wait"),
                _ => format!("{now} more"),
            };
            let (top, left, step) = match flight.sender {
                // The two lines of a milestone come first.
                Side::Client => (y(start) + 2.0 * LINE_HEIGHT, CLIENT - 18.5, -SQUARE),
                Side::Server => (y(start), SERVER + 12.5, SQUARE),
            };
            if index > 0 {
                self.arrow(Side::Client, start - RTT / 2, GREY, "3 3");
            }
            self.arrow(flight.sender, start, colour, "none");
            let bottom = self.note(flight.sender, top, "", &note);
            for square in 0..now + waiting {
                let x = left + step * f64::from(square % SQUARES_A_ROW);
                let y = bottom - 4.0 + SQUARE * f64::from(square / SQUARES_A_ROW);
                let fill = if square < now { colour } else { "none" };
                self.0 += &format!(
                    "<rect x=\"{x}\" y=\"{y:.1}\" width=\"6\" height=\"6\" fill=\"{fill}\" stroke=\"{colour}\"/>\n"
                );
            }
        }
    }

    fn arrow(&mut self, sender: Side, start: Duration, colour: &str, dashes: &str) {
        let (from, to) = match sender {
            Side::Client => (CLIENT, SERVER - 1.0),
            Side::Server => (SERVER, CLIENT + 3.0),
        };
        let (top, bottom) = (y(start), y(start + RTT / 2));
        let angle = (bottom - top).atan2(to - from).to_degrees();
        self.0 += &format!(
            "<path d=\"M{from} {top:.1}L{to} {bottom:.1}\" stroke=\"{colour}\" stroke-width=\"2\" stroke-dasharray=\"{dashes}\"/>\n\
             <path d=\"M0 0l-10 -4v8z\" fill=\"{colour}\" transform=\"translate({to} {bottom:.1}) rotate({angle:.1})\"/>\n"
        );
    }

    fn line(&mut self, x: f64, width: u8, [from, to]: [Duration; 2], colour: &str) {
        let (top, bottom) = (y(from), y(to));
        self.0 += &format!(
            "<path d=\"M{x} {top:.1}V{bottom:.1}\" stroke=\"{colour}\" stroke-width=\"{width}\"/>\n"
        );
    }

    /// Beside the line of `end`, its first line level with `y`. Returns what is level with the next.
    fn note(&mut self, end: Side, y: f64, class: &str, text: &str) -> f64 {
        match end {
            Side::Client => self.text(&format!("{class} end"), CLIENT - 12.0, y + 4.5, text),
            Side::Server => self.text(class, SERVER + 12.0, y + 4.5, text),
        }
        y + LINE_HEIGHT * text.lines().count() as f64
    }

    fn text(&mut self, class: &str, x: f64, mut y: f64, text: &str) {
        for line in text.lines() {
            self.0 += &format!("<text class=\"{class}\" x=\"{x}\" y=\"{y:.1}\">{line}</text>\n");
            y += LINE_HEIGHT;
        }
    }
}
