//! A picture in a page.

use std::io::{self, Write};

use crate::chart::{Chart, Drawing, WIDE, short};
use crate::escape::markup;

pub(super) fn write(to: &mut dyn Write, id: &str, chart: &Chart) -> io::Result<()> {
    let Drawing { wide, high, body, .. } = &chart.drawing;
    let class = match chart.drawing.zooms {
        true => "chart wide frames",
        false if *wide >= WIDE => "chart wide",
        false => "chart",
    };
    let (name, title) = (format!("{id}-{}", chart.id), markup(&chart.title));
    writeln!(
        to,
        "<figure id=\"{name}\"><figcaption id=\"{name}-t\">{title}</figcaption>\n<div class=\"draw\"><svg class=\"\
         {class}\" role=\"img\" aria-labelledby=\"{name}-t {name}-d\" viewBox=\"0 0 {wide} {}\"><desc \
         id=\"{name}-d\">{}</desc>{body}</svg></div>",
        short(*high),
        markup(&chart.says)
    )?;
    if !chart.legend.is_empty() {
        write!(to, "<ul class=\"legend\">")?;
        for key in &chart.legend {
            let series = key.series.map(|n| format!(" data-series=\"{n}\"")).unwrap_or_default();
            let mut mark = Drawing::new(14.0, 14.0);
            match key.series {
                Some(series) => mark.mark(series, 7.0, 7.0, ""),
                None if key.class == "ceiling-key" => mark.line([7.0, 0.0, 7.0, 14.0], "ceiling"),
                None => mark.rect([1.0, 1.0, 12.0, 12.0], &key.class, ""),
            }
            write!(
                to,
                "<li{series}><svg class=\"chart key\" viewBox=\"0 0 14 14\" aria-hidden=\"true\">{}</svg>{}</li>",
                mark.body,
                markup(&key.label)
            )?;
        }
        writeln!(to, "</ul>")?;
    }
    for note in &chart.notes {
        writeln!(to, "<p class=\"note\">{}</p>", markup(note))?;
    }
    writeln!(to, "</figure>")
}
