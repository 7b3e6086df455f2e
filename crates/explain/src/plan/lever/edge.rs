//! An edge nearer by.

use lastbyte_link::Probability;

use super::{About, Asks, Kind, Lever, Unpulled};

pub(super) const LEVER: Lever = Lever {
    name: "edge",
    doc: "an edge nearer to each user, so that each round trip is shorter; what it takes between edge and origin \
          is not in it (see lastbyte rtt)",
    about: About::Paths,
    kind: Kind::Own {
        pull: |setting, amounts| {
            let share = amounts.rtt_share;
            let nearer = setting.drawing(|population| {
                let known = population.rtt_share.unwrap_or(Probability::ONE);
                population.rtt_share =
                    Probability::from_fraction(known.fraction() * share.fraction());
            });
            nearer.ok_or(Unpulled::NoRtt)
        },
        words: |_, amounts| format!("{} of each RTT", amounts.rtt_share),
        asks: Asks::Server,
    },
};
