//! Names that stand for one number, or for several.

use lastbyte_exchange::Writes;

/// What one name of a question stands for.
pub(crate) trait Value: Copy {
    /// How many numbers it has.
    const COUNT: usize;

    /// Takes them; what is missing is as usual.
    fn read(self, numbers: &mut impl Iterator<Item = f64>) -> Self;

    /// Adds them to others.
    fn write(self, numbers: &mut Vec<f64>);
}

impl Value for f64 {
    const COUNT: usize = 1;

    fn read(self, numbers: &mut impl Iterator<Item = f64>) -> f64 {
        numbers.next().unwrap_or(self)
    }

    fn write(self, numbers: &mut Vec<f64>) {
        numbers.push(self);
    }
}

/// The sizes of writes, in bytes on the wire. The first 0 ends them.
pub type Sizes = [f64; Writes::MOST];

impl Value for Sizes {
    const COUNT: usize = Writes::MOST;

    fn read(self, numbers: &mut impl Iterator<Item = f64>) -> Sizes {
        self.map(|usual| usual.read(numbers))
    }

    fn write(self, numbers: &mut Vec<f64>) {
        numbers.extend(self);
    }
}

pub(crate) const NO_SIZES: Sizes = [0.0; _];

macro_rules! numbers {
    ($(#[$doc:meta])* $name:ident { $($(#[$field_doc:meta])* $field:ident: $type:ty = $usual:expr,)+ }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq)]
        pub struct $name {
            $($(#[$field_doc])* pub $field: $type,)+
        }

        impl $name {
            /// What its numbers are called, in their order: all of a list alike.
            pub fn names() -> Vec<&'static str> {
                let mut names = Vec::new();
                $(names.extend([stringify!($field); <$type as $crate::value::Value>::COUNT]);)+
                names
            }

            /// All of them, in their order.
            pub fn numbers(self) -> Vec<f64> {
                let mut numbers = Vec::new();
                $crate::value::Value::write(self, &mut numbers);
                numbers
            }
        }

        impl $crate::value::Value for $name {
            const COUNT: usize = 0 $(+ <$type as $crate::value::Value>::COUNT)+;

            fn read(self, numbers: &mut impl Iterator<Item = f64>) -> $name {
                $name { $($field: $crate::value::Value::read(self.$field, numbers),)+ }
            }

            fn write(self, numbers: &mut Vec<f64>) {
                $($crate::value::Value::write(self.$field, numbers);)+
            }
        }

        impl Default for $name {
            fn default() -> $name {
                $name { $($field: $usual,)+ }
            }
        }
    };
}

pub(crate) use numbers;
