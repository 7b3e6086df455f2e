//! Answers that are asked for again and again, and take long.

use std::sync::Mutex;

/// The latest answers, with what was asked.
pub(super) struct Memo<K, V>(Mutex<Vec<(K, V)>>);

/// More than a study has arms that would ask.
const MOST: usize = 256;

impl<K: PartialEq, V: Clone> Memo<K, V> {
    pub(super) const fn new() -> Memo<K, V> {
        Memo(Mutex::new(Vec::new()))
    }

    /// The answer to `asked`, which is made the first time. One that can't be made is not kept.
    ///
    /// # Errors
    ///
    /// Those of `make`.
    pub(super) fn get<E>(&self, asked: K, make: impl FnOnce(&K) -> Result<V, E>) -> Result<V, E> {
        // Without its lock, a memory is none.
        if let Ok(known) = self.0.lock()
            && let Some((_, answer)) = known.iter().find(|(known, _)| *known == asked)
        {
            return Ok(answer.clone());
        }
        let answer = make(&asked)?;
        if let Ok(mut known) = self.0.lock() {
            if known.len() >= MOST {
                known.clear();
            }
            known.push((asked, answer.clone()));
        }
        Ok(answer)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::*;

    #[test]
    fn an_answer_is_made_once() {
        let memo = Memo::new();
        let made = Cell::new(0);
        let double = |number: &usize| match number {
            13 => Err("bad luck"),
            number => {
                made.set(made.get() + 1);
                Ok(2 * number)
            }
        };
        for number in [1, 2, 1, 1, 2] {
            assert_eq!(memo.get(number, double), Ok(2 * number));
        }
        assert_eq!(made.get(), 2);
        for _ in 0..2 {
            assert_eq!(memo.get(13, double), Err("bad luck"));
        }
        for number in 100..100 + MOST {
            assert_eq!(memo.get(number, double), Ok(2 * number));
        }
        assert_eq!(memo.get(1, double), Ok(2));
        assert_eq!(made.get(), 2 + MOST + 1);
    }
}
