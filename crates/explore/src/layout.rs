//! Where each number of a question stands.

use crate::{CONNECTION, DIFFERENCE, FLIGHT, PACKET, STEP, What};

macro_rules! numbers {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident = $usual:expr,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: f64,)+
        }

        impl $name {
            /// What its numbers are called, in their order.
            pub const NAMES: &'static [&'static str] = &[$(stringify!($field)),+];

            fn read(numbers: &mut impl Iterator<Item = f64>) -> $name {
                $name { $($field: numbers.next().unwrap_or($usual),)+ }
            }

            fn numbers(&self) -> impl Iterator<Item = f64> {
                [$(self.$field),+].into_iter()
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $usual,)+ }
            }
        }
    };
}

numbers! {
    /// The network, and what crosses it.
    Network {
        /// Milliseconds there and back.
        rtt = 35.0,
        /// Mbit/s in each direction; 0 is without a limit.
        rate = 0.0,
        /// The server's initial congestion window, in segments.
        initcwnd = 10.0,
        /// Bytes of payload that fit one segment.
        mss = lastbyte_sizes::framing::MSS as f64,
        /// Bytes of payload of the response; none is asked for when it is 0.
        payload = 0.0,
        /// Bytes of the request on the wire.
        request = 81.0,
        /// Bytes of payload of each record of the response; 0 where the first one fills a segment, and later ones hold as much
        /// as records can.
        record = 0.0,
        /// Bytes on the wire of the session tickets before the response.
        tickets = 0.0,
        /// The first write that those leave in, if they don't leave with the response; 0 ends the writes.
        ticket_write_1 = 0.0,
        /// The second one.
        ticket_write_2 = 0.0,
        /// The third one.
        ticket_write_3 = 0.0,
        /// The fourth one.
        ticket_write_4 = 0.0,
        /// The fifth one.
        ticket_write_5 = 0.0,
        /// The sixth one.
        ticket_write_6 = 0.0,
        /// The first write that the response leaves in, if it does not in one; 0 ends the writes, and the last one before repeats.
        response_write_1 = 0.0,
        /// The second one.
        response_write_2 = 0.0,
        /// The third one.
        response_write_3 = 0.0,
        /// The fourth one.
        response_write_4 = 0.0,
        /// The fifth one.
        response_write_5 = 0.0,
        /// The sixth one.
        response_write_6 = 0.0,
        /// The seventh one.
        response_write_7 = 0.0,
        /// The eighth one.
        response_write_8 = 0.0,
        /// The ninth one.
        response_write_9 = 0.0,
        /// The tenth one.
        response_write_10 = 0.0,
        /// The eleventh one.
        response_write_11 = 0.0,
        /// The twelfth one.
        response_write_12 = 0.0,
    }
}

numbers! {
    /// The messages of an arm: as they are, with their header, but for what the client sends, which is as it is on the
    /// wire.
    Arm {
        /// ClientHello, on the wire.
        client_hello = 300.0,
        /// ServerHello.
        server_hello = 155.0,
        /// EncryptedExtensions.
        encrypted_extensions = 6.0,
        /// Certificate.
        certificate = 2000.0,
        /// CertificateVerify.
        certificate_verify = 79.0,
        /// The server's Finished.
        server_finished = 52.0,
        /// The client's Finished, and its change_cipher_spec if nobody asked for another hello, on the wire.
        client_finish = 80.0,
        /// HelloRetryRequest with the server's change_cipher_spec, on the wire; 0 where the first hello will do.
        hello_retry_request = 0.0,
        /// The second ClientHello with the client's change_cipher_spec, on the wire.
        second_client_hello = 0.0,
        /// The first write that ServerHello to Finished leave in besides the last; 0 ends the writes.
        flight_write_1 = 0.0,
        /// The second one.
        flight_write_2 = 0.0,
        /// The third one.
        flight_write_3 = 0.0,
        /// The fourth one.
        flight_write_4 = 0.0,
        /// The fifth one.
        flight_write_5 = 0.0,
        /// The sixth one.
        flight_write_6 = 0.0,
    }
}

numbers! {
    /// How a staircase or a difference is walked along.
    Sweep {
        /// Its smallest size.
        from = 0.0,
        /// Its largest.
        to = 60_000.0,
        /// How many steps lie between them, at least.
        steps = 32.0,
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
            network: Network::read(&mut numbers),
            arms: [Arm::read(&mut numbers), Arm::read(&mut numbers)],
            sweep: Sweep::read(&mut numbers),
        }
    }

    /// As numbers, in the order of [`layout`].
    pub fn numbers(&self) -> Vec<f64> {
        let [one, other] = &self.arms;
        std::iter::once(self.what)
            .chain(self.network.numbers())
            .chain(one.numbers())
            .chain(other.numbers())
            .chain(self.sweep.numbers())
            .collect()
    }

    pub(crate) fn asked(&self) -> Option<What> {
        let what = What::ALL.iter().enumerate();
        let mut what = what.filter(|(index, _)| (index + 1) as f64 == self.what);
        what.next().map(|(_, what)| *what)
    }
}

/// The names of all numbers of questions and answers, in their order: `question` is `what`, then `network`, `arm` twice
/// and `sweep`.
pub fn layout() -> [(&'static str, &'static [&'static str]); 8] {
    [
        ("network", Network::NAMES),
        ("arm", Arm::NAMES),
        ("sweep", Sweep::NAMES),
        ("connection", &CONNECTION),
        ("flight", &FLIGHT),
        ("packet", &PACKET),
        ("step", &STEP),
        ("difference", &DIFFERENCE),
    ]
}
