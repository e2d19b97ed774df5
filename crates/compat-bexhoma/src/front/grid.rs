//! Tables as bexhoma prints them: rules of dashes between rows, one of equals signs below the head; figures to the right.

/// A table; columns without a value in any row are left out, but for the first.
pub fn grid(heads: &[&str], figures: &[&str], rows: &[Vec<String>]) -> String {
    let shown: Vec<usize> =
        (0..heads.len()).filter(|at| *at == 0 || rows.iter().any(|row| !row[*at].is_empty())).collect();
    let width = |at: usize| {
        let cells = rows.iter().map(|row| row[at].chars().count());
        cells.chain([heads[at].chars().count() + 2]).max().unwrap_or(0)
    };
    let rule = |sign: &str| {
        let parts: Vec<String> = shown.iter().map(|at| sign.repeat(width(*at) + 2)).collect();
        format!("+{}+\n", parts.join("+"))
    };
    let line = |cells: &dyn Fn(usize) -> String| {
        let parts: Vec<String> = shown
            .iter()
            .map(|at| {
                let (cell, width) = (cells(*at), width(*at));
                match figures.contains(&heads[*at]) {
                    true => format!(" {cell:>width$} "),
                    false => format!(" {cell:<width$} "),
                }
            })
            .collect();
        format!("|{}|\n", parts.join("|"))
    };
    let mut out = rule("-") + &line(&|at| heads[at].to_owned()) + &rule("=");
    for row in rows {
        out += &line(&|at| row[at].clone());
        out += &rule("-");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The table of bexhoma's example, column for column.
    #[test]
    fn the_examples_table() {
        let heads = ["1774020403", "sut", "loaded [s]", "use case", "worker", "pool", "loading"];
        let row = ["Dragonfly-64-8-196608", "(1. Running)", "1", "ycsb", "(3 Running)", "", "(8 Running)"];
        let table = grid(&heads, &["loaded [s]"], &[row.map(str::to_owned).to_vec()]);
        let expected = "\
+-----------------------+--------------+--------------+------------+-------------+-------------+
| 1774020403            | sut          |   loaded [s] | use case   | worker      | loading     |
+=======================+==============+==============+============+=============+=============+
| Dragonfly-64-8-196608 | (1. Running) |            1 | ycsb       | (3 Running) | (8 Running) |
+-----------------------+--------------+--------------+------------+-------------+-------------+
";
        assert_eq!(table, expected);
    }
}
