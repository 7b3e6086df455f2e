//! Options whose values are names, which shells complete.

use std::ffi::OsStr;

use clap::builder::{PossibleValue, TypedValueParser};
use clap::{Arg, Command, Error};

/// Takes what `parse` does, and tells shells that it is one of `names`.
pub(super) fn one_of<P>(names: impl IntoIterator<Item = &'static str>, parse: P) -> OneOf<P> {
    let names = names.into_iter().collect();
    OneOf { names, parse }
}

/// What [`one_of`] makes.
#[derive(Clone, Debug)]
pub(super) struct OneOf<P> {
    names: Vec<&'static str>,
    parse: P,
}

impl<P: TypedValueParser> TypedValueParser for OneOf<P> {
    type Value = P::Value;

    fn parse_ref(
        &self,
        command: &Command,
        argument: Option<&Arg>,
        value: &OsStr,
    ) -> Result<P::Value, Error> {
        self.parse.parse_ref(command, argument, value)
    }

    fn possible_values(&self) -> Option<Box<dyn Iterator<Item = PossibleValue> + '_>> {
        Some(Box::new(self.names.iter().copied().map(PossibleValue::new)))
    }
}
