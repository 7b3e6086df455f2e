//! `docs/columns.md`: all columns of rows.

use super::described::kind;
use super::requests::{OF_REQUESTS, shared};
use super::{COLUMNS, Column};

const HEAD: &str = "# Columns of rows\n\n\
     The code writes this page from the table that it writes rows by (see CONTRIBUTING.md).\n\n\
     A row is one connection, with all that it depends on. `lastbyte run` keeps rows in `rows.parquet`, and \
     `lastbyte compare --output FILE.csv` or `FILE.parquet` writes them: the same columns in the same order. In Parquet, \
     text is UTF-8, a whole number INT64, a fraction DOUBLE, a truth BOOLEAN, and what is absent null; in CSV it is empty. \
     Files of all rows hold this table too, as JSON in their metadata under the key `columns` ([notebook.md](notebook.md)). \
     Times are in nanoseconds, and those of a connection from just before `connect()`.\n\n";

const TABLE: &str =
    "| column | type | unit | absent where | what it holds |\n|---|---|---|---|---|\n";

const REQUESTS: &str = "\n## Columns of requests\n\n\
     Where pages were loaded ([page-loads.md](page-loads.md)), `lastbyte run` keeps `requests.parquet` besides: a row for each \
     request of each navigation, in the same form. Times are since the navigation began, in whole microseconds of the browser's \
     clock. A row begins with what the connection's row has, too: ";

/// All columns, as a page of Markdown.
pub fn reference() -> String {
    let own: String = OF_REQUESTS.iter().map(line).collect();
    let rows: String = COLUMNS.iter().map(line).collect();
    let shared: Vec<String> = shared()
        .map(|column| format!("`{}`", column.name))
        .collect();
    let shared = shared.join(", ");
    format!("{HEAD}{TABLE}{rows}{REQUESTS}{shared}.\n\n{TABLE}{own}")
}

fn line<V>(column: &Column<V>) -> String {
    format!(
        "| `{}` | {} | {} | {} | {} |\n",
        column.name,
        kind(column.kind),
        column.unit(),
        column.absent_where(),
        column.doc
    )
}
