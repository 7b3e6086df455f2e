//! What a server says to an update: signed as it should be but for some bytes, or anything.
#![no_main]

use std::sync::LazyLock;

use domain::base::iana::Rcode;
use domain::base::{Message, MessageBuilder};
use domain::rdata::tsig::Time48;
use domain::tsig::{Key, ServerTransaction};
use lastbyte_ad::dns::fuzzing::update_with;
use lastbyte_ad::dns::{Change, Name, Rtype, tsig};
use lastbyte_fuzz::change;
use libfuzzer_sys::fuzz_target;

static KEY: LazyLock<Key> = LazyLock::new(|| {
    tsig::key("key \"update.example\" { algorithm hmac-sha256; secret \"c2VjcmV0IHNlY3JldCE=\"; };")
        .unwrap()
});
static ZONE: LazyLock<Name> = LazyLock::new(|| "example".parse().unwrap());
static CHANGES: LazyLock<[Change; 1]> = LazyLock::new(|| {
    [Change::Remove {
        name: "server.example".parse().unwrap(),
        rtype: Rtype::from_int(65_280),
    }]
});

fuzz_target!(|data: &[u8]| {
    let Some((kind, data)) = data.split_first() else {
        return;
    };
    // Of a signed answer, what its signature covers, and whether that was changed.
    let mut is_changed = false;
    let key = (kind & 1 == 0).then_some(&*KEY);
    let answered = update_with(&ZONE, &*CHANGES, key, |request| {
        match (kind >> 1 & 3, key) {
            (0, _) => data.to_vec(),
            (1, _) => {
                // An answer to this, without a signature.
                let mut answer = request
                    .first_chunk::<2>()
                    .copied()
                    .unwrap_or_default()
                    .to_vec();
                answer.extend([0xa8, kind >> 3 & 1]);
                answer.extend_from_slice(data);
                answer
            }
            (_, None) => request.to_vec(),
            (_, Some(key)) => {
                let mut asked = Message::from_octets(request.to_vec()).unwrap();
                let transaction = ServerTransaction::request(&key, &mut asked, Time48::now());
                let transaction = transaction.ok().flatten().unwrap();
                let answer = MessageBuilder::new_vec();
                let answer = answer.start_answer(&asked, Rcode::NOERROR).unwrap();
                let mut answer = answer.additional();
                let signed = answer.as_slice().len();
                transaction.answer(&mut answer, Time48::now()).unwrap();
                let right = answer.finish();
                let mut changed = right.clone();
                change(&mut changed, data);
                if kind & 0x80 != 0 {
                    changed.truncate(right.len() * usize::from(kind >> 3 & 15) / 16);
                }
                is_changed = changed.get(..signed) != right.get(..signed);
                changed
            }
        }
    });
    match answered {
        Ok(()) => assert!(!is_changed),
        Err(error) => assert!(!error.to_string().contains('\n'), "{error}"),
    }
});
