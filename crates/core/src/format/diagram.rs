//! The drawing of a format's bits.

use super::Format;

impl Format<'_> {
    /// Draws the bits:
    /// ```text
    ///   39 bits   1      8      16          16
    /// ┌─────────┬──────┬──────┬───────────┬──────────┐
    /// │ time    │ tick │ meta │ partition │ sequence │
    /// └─────────┴──────┴──────┴───────────┴──────────┘
    /// ```
    #[must_use]
    pub fn diagram(&self) -> String {
        let mut rows = [" ", "┌", "│", "└"].map(String::from);
        for (i, part) in self.parts.iter().enumerate() {
            let bits = format!("{}{}", part.bits, if i == 0 { " bits" } else { "" });
            let width = bits.len().max(part.name.len());
            let end = if i + 1 == self.parts.len() { ["", "┐", "│", "┘"] } else { [" ", "┬", "│", "┴"] };
            let line = "─".repeat(width + 2);
            let cells = [format!(" {bits:width$} "), line.clone(), format!(" {:width$} ", part.name), line];
            for ((row, cell), end) in rows.iter_mut().zip(cells).zip(end) {
                *row += &cell;
                *row += end;
            }
        }
        rows.map(|row| row.trim_end().to_owned() + "\n").concat()
    }
}
