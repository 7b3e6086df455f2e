//! Rows as CSV.

use std::io;

use super::{Batch, COLUMNS, Value};

/// Writes rows as CSV, one line per connection after a first line with the columns' names.
pub struct CsvWriter<W: io::Write>(csv::Writer<W>);

impl<W: io::Write> CsvWriter<W> {
    /// Writes the names of the columns.
    ///
    /// # Errors
    ///
    /// When `out` can't be written.
    pub fn new(out: W) -> io::Result<Self> {
        let mut csv = csv::Writer::from_writer(out);
        csv.write_record(COLUMNS.iter().map(|column| column.name))?;
        Ok(Self(csv))
    }

    /// Writes the connections of `batch`.
    ///
    /// # Errors
    ///
    /// When they can't be written.
    pub fn write(&mut self, batch: &Batch<'_>) -> io::Result<()> {
        for connection in batch.connections() {
            for column in COLUMNS.iter() {
                match column.value(&connection) {
                    Value::Absent => self.0.write_field(""),
                    Value::Text(text) => self.0.write_field(text.as_ref()),
                    Value::Whole(number) => self.0.write_field(number.to_string()),
                    Value::Fraction(number) => self.0.write_field(number.to_string()),
                    Value::Truth(truth) => self.0.write_field(truth.to_string()),
                }?;
            }
            self.0.write_record(None::<&[u8]>)?;
        }
        Ok(())
    }

    /// Writes what is still held back.
    ///
    /// # Errors
    ///
    /// When it can't be written.
    pub fn finish(mut self) -> io::Result<()> {
        self.0.flush()
    }
}
