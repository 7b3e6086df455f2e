//! Questions and their answers, drawn from a seed, as numbers of eight bytes: how many a question has, the question, how many
//! its answer has, the answer. `scripts/explore` holds the module for browsers to them.
//!
//!     cargo run --release -p lastbyte-explore --example questions -- COUNT SEED

use std::env::args;
use std::io::{self, BufWriter, Write};

use lastbyte_explore::{Arm, Network, Question, Sent, Sizes, answer};
use lastbyte_link::mix;

fn main() -> io::Result<()> {
    let mut numbers = args().skip(1).map(|number| number.parse().unwrap_or(1));
    let count = numbers.next().unwrap_or(1000);
    let mut draws = Draws(numbers.next().unwrap_or(1));
    let mut out = BufWriter::new(io::stdout().lock());
    for _ in 0..count {
        let question = draws.question().numbers();
        for numbers in [&question, &answer(&question)] {
            out.write_all(&(numbers.len() as f64).to_le_bytes())?;
            for number in numbers {
                out.write_all(&number.to_le_bytes())?;
            }
        }
    }
    out.flush()
}

/// Splitmix64 (Steele et al., 2014).
struct Draws(u64);

impl Draws {
    fn draw(&mut self) -> u64 {
        let drawn = mix(self.0);
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        drawn
    }

    fn below(&mut self, bound: u64) -> f64 {
        (self.draw() % bound) as f64
    }

    /// One in eight of a kind that no page would ask for.
    fn odd(&mut self, usual: f64) -> f64 {
        match self.draw() % 64 {
            0 => f64::NAN,
            1 => -usual,
            2 => f64::INFINITY,
            3 => usual * 1e3,
            4 => 0.0,
            5 => usual + 0.5,
            _ => usual,
        }
    }

    /// Half of them none.
    fn perhaps(&mut self, bound: u64) -> f64 {
        self.below(bound) * self.below(2)
    }

    fn arm(&mut self) -> Arm {
        let retries = self.below(4) == 0.0;
        let hello = self.below(2000);
        Arm {
            client_hello: 200.0 + self.below(2000),
            server_hello: 90.0 + self.below(1600),
            encrypted_extensions: 6.0 + self.below(100),
            certificate: 300.0 + self.below(90_000),
            certificate_verify: 72.0 + self.below(50_000),
            server_finished: 36.0 + self.below(17),
            client_finish: 64.0 + self.below(17),
            hello_retry_request: if retries { 99.0 } else { 0.0 },
            second_client_hello: if retries { 200.0 + hello } else { 0.0 },
            server_writes: self.writes(8000),
            transport: self.below(2),
        }
    }

    /// Two writes, each of which may be none.
    fn writes(&mut self, most: u64) -> Sizes {
        let mut sizes = Sizes::default();
        sizes[..2].fill_with(|| self.perhaps(most));
        sizes
    }

    /// What is sent, with a record, bytes and writes below these.
    fn sent(&mut self, [record, wire, writes]: [u64; 3]) -> Sent {
        Sent {
            record: self.perhaps(record),
            wire: self.perhaps(wire),
            writes: self.writes(writes),
        }
    }

    fn question(&mut self) -> Question {
        let thousandths = |number: f64| number / 1000.0;
        let (rtt, rate) = (self.below(400_000), self.below(1_000_000));
        let (initcwnd, payload) = (1.0 + self.below(60), self.below(400_000));
        let rate = [0.0, thousandths(rate), rate / 1e5][self.below(3) as usize];
        let mss = [1448.0, 1448.0, 1200.0, 8948.0][self.below(4) as usize];
        let mut question = Question {
            what: 1.0 + self.below(3),
            network: Network {
                rtt: self.odd(thousandths(rtt)),
                rate: self.odd(rate),
                initcwnd: self.odd(initcwnd),
                mss: self.odd(mss),
                payload: payload * self.below(2),
                tickets: self.sent([1, 2000, 600]),
                response: self.sent([16_385, 1, 9000]),
                ..Network::default()
            },
            arms: [self.arm(), self.arm()],
            ..Question::default()
        };
        question.sweep.from = self.below(2000);
        question.sweep.to =
            question.sweep.from + self.below(1 << 20) / [1.0, 20.0][self.below(2) as usize];
        question.sweep.steps = 1.0 + self.below(12);
        question
    }
}
