use super::*;

/// `q->loss && q->loss >= get_crandom()`, with what tc makes of a percentage.
#[test]
fn loss_at_its_edges() {
    let is_lost = |fraction: f64, draw: u32| {
        let loss = Probability::from_fraction(fraction).unwrap_or_default();
        // The lower half has no say.
        let draw = u64::from(draw) << 32;
        let lost = is_lost(loss, draw);
        assert_eq!(is_lost(loss, draw | u64::from(u32::MAX)), lost);
        lost
    };
    assert!(!is_lost(0.0, 0));
    assert!(is_lost(1.0, u32::MAX));
    assert!(is_lost(0.5, 1 << 31));
    assert!(!is_lost(0.5, (1 << 31) + 1));
    // 1 % is 42,949,673.
    assert!(is_lost(0.01, 42_949_673));
    assert!(!is_lost(0.01, 42_949_674));
    // Too little to be anything, and the least that is.
    assert!(!is_lost(1e-10, 0));
    assert!(is_lost(2e-10, 1));
    assert!(!is_lost(2e-10, 2));
}
