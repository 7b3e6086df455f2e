//! Where the randomness of a link comes from.

use lastbyte_link::{Direction, Link, Order, Rate, Seed};

/// Where the randomness of one link comes from: each link of a grid has luck of its own.
pub(super) fn link_seed(seed: Seed, link: &Link) -> Seed {
    let direction = |direction: &Direction| {
        let mut all = format!(
            "{} {} {} {} {} {}",
            direction.delay.as_nanos(),
            direction.jitter.as_nanos(),
            direction.distribution,
            direction.loss,
            direction.rate.map_or(0, Rate::bits_per_second),
            direction.queue
        );
        // What is as usual changes no luck of those who have always been without it.
        if let Some(trace) = &direction.trace {
            all += &format!(" trace {:016x}", trace.digest());
        }
        if direction.order != Order::Free {
            all += &format!(" order {}", direction.order);
        }
        if let Some(qdisc) = &direction.qdisc {
            all += &format!(" qdisc {qdisc}");
        }
        all
    };
    seed.part(&format!(
        "{}; {}",
        direction(&link.forward),
        direction(&link.backward)
    ))
}

/// How many thousandths of its time computing takes at connection `index`: between 1 / `most` and `most` of it, evenly drawn
/// by the logarithm.
pub(super) fn pace(seed: Seed, index: u32, most: f64) -> u32 {
    let drawn = seed.part(&format!("pace {index}")).0;
    // The upper 53 bits, which a double holds, from -1 to 1.
    let even = (drawn >> 11) as f64 / (1_u64 << 52) as f64 - 1.0;
    (1000.0 * most.powf(even)).round() as u32
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use lastbyte_link::{Passes, Trace};

    use super::*;

    const MS: Duration = Duration::from_millis(1);

    #[test]
    fn paces_are_around_the_profile() {
        let paces: Vec<u32> = (0..1000).map(|index| pace(Seed(7), index, 1.4)).collect();
        assert!(paces.iter().all(|pace| (714..=1400).contains(pace)));
        let quick = paces.iter().filter(|pace| **pace < 1000).count();
        assert!((450..550).contains(&quick), "{quick}");
        assert!(paces.iter().any(|pace| *pace < 750) && paces.iter().any(|pace| *pace > 1350));
        assert_eq!(pace(Seed(7), 3, 1.0), 1000);
    }

    #[test]
    fn each_link_of_a_grid_has_luck_of_its_own() {
        let direction = Direction::default();
        let link = Link::symmetric(35 * MS, direction.clone());
        let rate = Rate::from_bits_per_second(1);
        let mut links = vec![link.clone(), Link::symmetric(36 * MS, direction)];
        for changed in [
            Direction {
                jitter: MS,
                ..link.forward.clone()
            },
            Direction {
                loss: "1%".parse().unwrap(),
                ..link.forward.clone()
            },
            Direction {
                rate,
                ..link.forward.clone()
            },
            Direction {
                queue: 999,
                ..link.forward.clone()
            },
            Direction {
                delay: MS,
                ..link.forward.clone()
            },
            Direction {
                qdisc: Some("codel".parse().unwrap()),
                ..link.forward.clone()
            },
            Direction {
                order: Order::Kept,
                ..link.forward.clone()
            },
            Direction {
                trace: Some(Trace::parse("a", Passes::Looped, b"1").unwrap()),
                ..link.forward.clone()
            },
            Direction {
                trace: Some(Trace::parse("a", Passes::Looped, b"2").unwrap()),
                ..link.forward.clone()
            },
        ] {
            links.push(Link {
                forward: changed.clone(),
                ..link.clone()
            });
            links.push(Link {
                backward: changed,
                ..link.clone()
            });
        }
        let seeds: Vec<_> = links.iter().map(|link| link_seed(Seed(1), link)).collect();
        for (index, seed) in seeds.iter().enumerate() {
            assert!(!seeds[..index].contains(seed), "{:?}", links[index]);
        }
        assert_eq!(seeds[0], link_seed(Seed(1), &links[0].clone()));
        assert_ne!(seeds[0], link_seed(Seed(2), &links[0]));
    }
}
