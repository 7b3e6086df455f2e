//! What a study finds, as its author says it: a sentence with places, which the results fill with numbers.

use super::{Bounds, Question};

/// A sentence with places for numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Headline {
    /// Its words and places, in their order; at least one is a place.
    pub pieces: Vec<Piece>,
}

impl Headline {
    /// Its places, in their order.
    pub fn places(&self) -> impl Iterator<Item = &Place> {
        self.pieces.iter().filter_map(|piece| match piece {
            Piece::Words(_) => None,
            Piece::Place(place) => Some(&**place),
        })
    }

    pub(super) fn places_mut(&mut self) -> impl Iterator<Item = &mut Place> {
        self.pieces.iter_mut().filter_map(|piece| match piece {
            Piece::Words(_) => None,
            Piece::Place(place) => Some(&mut **place),
        })
    }
}

/// A part of a sentence.
#[derive(Clone, Debug, PartialEq)]
pub enum Piece {
    /// Words, as they were written.
    Words(String),
    /// A place that a number fills.
    Place(Box<Place>),
}

/// A place of a sentence: what is asked of results to fill it, and what must come of that for the sentence to stand.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    /// What the sentence calls it.
    pub name: String,
    /// What is asked: a number for each of its percentiles and each of its cells, or pool of cells.
    pub question: Question,
    /// What each of those must be.
    pub bearing: Bearing,
}

/// What a number must be to bear out the sentence that it stands in.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Bearing {
    /// It is told, whatever it is: a time, a size.
    Any,
    /// A difference in the direction that the quantity names: more than zero, with its whole interval.
    Shown,
    /// Its whole interval lies within these bounds. Of bounds with one end, the end of the interval that faces it is
    /// told: what is known of a number that is 5 ms at most is the most that it may be.
    Within(Bounds),
}

/// What is wrong with the text of a sentence.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum TextError {
    /// A place does not end.
    #[error("a \"{{\" that no \"}}\" closes: write a place such as {{later}}")]
    Open,
    /// A place ends that has not begun.
    #[error("a \"}}\" before which no \"{{\" stands: write a place such as {{later}}")]
    Closed,
    /// There are no places.
    #[error(
        "no place for a number, so no result can bear it out: write one such as {{later}}, and [number.later]"
    )]
    NoPlaces,
}

/// A part of the text of a sentence: words, or the name of a place.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TextPiece<'a> {
    /// Words.
    Words(&'a str),
    /// The name of a place.
    Name(&'a str),
}

/// `A chain of ML-DSA comes {later} later`: words and names of places.
pub(super) fn text_pieces(text: &str) -> Result<Vec<TextPiece<'_>>, TextError> {
    let mut pieces = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '}']) {
        let (words, place) = rest.split_at(at);
        let place = place.strip_prefix('{').ok_or(TextError::Closed)?;
        let (name, after) = place.split_once('}').ok_or(TextError::Open)?;
        if name.contains('{') {
            return Err(TextError::Open);
        }
        pieces.extend([TextPiece::Words(words), TextPiece::Name(name)]);
        rest = after;
    }
    if pieces.is_empty() {
        return Err(TextError::NoPlaces);
    }
    pieces.push(TextPiece::Words(rest));
    pieces.retain(|piece| *piece != TextPiece::Words(""));
    Ok(pieces)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)]

    use proptest::prelude::*;

    use super::TextPiece::{Name, Words};
    use super::{TextError, text_pieces};

    #[test]
    fn places_stand_among_words() {
        assert_eq!(
            text_pieces("by {a}, {b} later").unwrap(),
            [
                Words("by "),
                Name("a"),
                Words(", "),
                Name("b"),
                Words(" later")
            ]
        );
        assert_eq!(text_pieces("{a}{b}").unwrap(), [Name("a"), Name("b")]);
        for (text, error) in [
            ("by {a", TextError::Open),
            ("by {a {b}", TextError::Open),
            ("by a}", TextError::Closed),
            ("{a} by}", TextError::Closed),
            ("by much", TextError::NoPlaces),
        ] {
            assert_eq!(text_pieces(text), Err(error), "{text}");
        }
    }

    proptest! {
        #[test]
        fn nothing_of_a_text_is_lost(text in "[{}ab ]{0,12}") {
            if let Ok(pieces) = text_pieces(&text) {
                let told = pieces.into_iter().map(|piece| match piece {
                    Words(words) => words.to_owned(),
                    Name(name) => format!("{{{name}}}"),
                });
                prop_assert_eq!(told.collect::<String>(), text);
            }
        }
    }
}
