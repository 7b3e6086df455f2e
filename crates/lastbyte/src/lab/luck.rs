//! Where the randomness of a link comes from.

use lastbyte_link::{Direction, Link, Rate, Seed};

/// Where the randomness of one link comes from: each link of a grid has luck of its own.
pub(super) fn link_seed(seed: Seed, link: &Link) -> Seed {
    let direction = |direction: &Direction| {
        format!(
            "{} {} {} {} {} {}",
            direction.delay.as_nanos(),
            direction.jitter.as_nanos(),
            direction.distribution,
            direction.loss,
            direction.rate.map_or(0, Rate::bits_per_second),
            direction.queue
        )
    };
    seed.part(&format!(
        "{}; {}",
        direction(&link.forward),
        direction(&link.backward)
    ))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]

    use std::time::Duration;

    use super::*;

    const MS: Duration = Duration::from_millis(1);

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
