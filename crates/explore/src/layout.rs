//! Where each number of a question stands.

use crate::sent::Sent;
use crate::value::{NO_SIZES, Sizes, Value, numbers};
use crate::{CONNECTION, DIFFERENCE, FLIGHT, PACKET, STEP, What};

numbers! {
    /// The network, and what crosses it.
    Network {
        /// Milliseconds there and back.
        rtt: f64 = 35.0,
        /// Mbit/s in each direction; 0 is without a limit.
        rate: f64 = 0.0,
        /// The server's initial congestion window, in segments.
        initcwnd: f64 = 10.0,
        /// Bytes of payload that fit one segment.
        mss: f64 = lastbyte_sizes::framing::MSS as f64,
        /// Bytes of payload of the response; none is asked for when it is 0.
        payload: f64 = 0.0,
        /// Bytes of the request on the wire.
        request: f64 = 81.0,
        /// The session tickets before the response.
        tickets: Sent = Sent::default(),
        /// How the response leaves.
        response: Sent = Sent::default(),
    }
}

numbers! {
    /// The messages of an arm: as they are, with their header, but for what the client sends, which
    /// is as it is on the wire.
    Arm {
        /// ClientHello, on the wire.
        client_hello: f64 = 300.0,
        /// ServerHello.
        server_hello: f64 = 155.0,
        /// EncryptedExtensions.
        encrypted_extensions: f64 = 6.0,
        /// Certificate.
        certificate: f64 = 2000.0,
        /// CertificateVerify.
        certificate_verify: f64 = 79.0,
        /// The server's Finished.
        server_finished: f64 = 52.0,
        /// The client's Finished, and its change_cipher_spec if nobody asked for another hello, on
        /// the wire.
        client_finish: f64 = 80.0,
        /// HelloRetryRequest with the server's change_cipher_spec, on the wire; 0 where the first
        /// hello will do.
        hello_retry_request: f64 = 0.0,
        /// The second ClientHello with the client's change_cipher_spec, on the wire.
        second_client_hello: f64 = 0.0,
        /// The writes that ServerHello to Finished leave in besides the last.
        server_writes: Sizes = NO_SIZES,
        /// What carries it: 0 is TCP, 1 QUIC. All sizes are as over TCP, in either case.
        transport: f64 = 0.0,
    }
}

numbers! {
    /// How a staircase or a difference is walked along.
    Sweep {
        /// Its smallest size.
        from: f64 = 0.0,
        /// Its largest.
        to: f64 = 60_000.0,
        /// How many steps lie between them, at least.
        steps: f64 = 32.0,
    }
}

/// What is asked.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Question {
    /// Which of [`What::ALL`], counted from 1.
    pub what: f64,
    /// The network.
    pub network: Network,
    /// Both arms. Only a difference has a second one.
    pub arms: [Arm; 2],
    /// Of a staircase or a difference.
    pub sweep: Sweep,
}

impl Question {
    /// Reads what [`numbers`](Question::numbers) wrote. What is missing is as usual.
    pub fn of(numbers: &[f64]) -> Question {
        let mut numbers = numbers.iter().copied();
        Question {
            what: numbers.next().unwrap_or_default(),
            network: Network::default().read(&mut numbers),
            arms: [Arm::default(); 2].map(|arm| arm.read(&mut numbers)),
            sweep: Sweep::default().read(&mut numbers),
        }
    }

    /// As numbers, in the order of [`layout`].
    pub fn numbers(&self) -> Vec<f64> {
        let mut numbers = vec![self.what];
        self.network.write(&mut numbers);
        self.arms.iter().for_each(|arm| arm.write(&mut numbers));
        self.sweep.write(&mut numbers);
        numbers
    }

    pub(crate) fn what(&self) -> Option<What> {
        let what = What::ALL.iter().enumerate();
        let mut what = what.filter(|(index, _)| (index + 1) as f64 == self.what);
        what.next().map(|(_, what)| *what)
    }
}

/// The names of all numbers of questions and answers, in their order: `question` is `what`, then
/// `network`, `arm` twice and `sweep`.
pub fn layout() -> [(&'static str, Vec<&'static str>); 8] {
    [
        ("network", Network::names()),
        ("arm", Arm::names()),
        ("sweep", Sweep::names()),
        ("connection", CONNECTION.to_vec()),
        ("flight", FLIGHT.to_vec()),
        ("packet", PACKET.to_vec()),
        ("step", STEP.to_vec()),
        ("difference", DIFFERENCE.to_vec()),
    ]
}
