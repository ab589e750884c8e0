//! The patterns of schemas and rules: Go's syntax, read by our engine.
//!
//! Answers: which texts match this pattern of Go's `regexp`, and what would Go say of one that is none? The common mistakes
//! are received word for word; others in general.
//! 1. `\d`, `\w`, `\s` and `\b` know no letters but those of ASCII, and a brace or a bracket that ends nothing is a letter.
//! 2. Without the feature `cel` patterns know no classes of Unicode, and a pattern that has one is refused with its
//!    definition.
#[cfg(feature = "cel")]
pub(crate) use regex::Regex;
#[cfg(not(feature = "cel"))]
pub(crate) use regex_lite::Regex;

/// Reads a pattern.
///
/// # Errors
/// Go's error for a pattern that cannot be read.
pub(crate) fn read(text: &str) -> Result<Regex, String> {
    let own = translated(text).map_err(|why| format!("error parsing regexp: {why}"))?;
    Regex::new(&own).map_err(|_| words(text))
}

fn translated(text: &str) -> Result<String, String> {
    let mut reading = Reading { out: String::with_capacity(text.len()), rest: text };
    // What begins with the repetition that stands right before.
    let mut last = "";
    while let Some(letter) = reading.rest.chars().next() {
        let before = reading.rest;
        let repetition = repetition(before)?;
        match (letter, repetition) {
            (_, Some(length)) => reading.keep(length),
            ('\\', _) => reading.escape(false),
            ('[', _) => reading.class(),
            ('(', _) if before.starts_with("(?") => reading.keep(2),
            ('{', _) => reading.put(1, "\\{"),
            _ => reading.keep(letter.len_utf8()),
        }
        if repetition.is_some() && !last.is_empty() {
            let both = &last[..last.len() - reading.rest.len()];
            return Err(format!("invalid nested repetition operator: `{both}`"));
        }
        last = if repetition.is_some() { before } else { "" };
    }
    Ok(reading.out)
}

/// The length of the repetition that a text begins with, if it does.
fn repetition(text: &str) -> Result<Option<usize>, String> {
    let mut length = usize::from(text.starts_with(['*', '+', '?']));
    if let Some((counts, _)) = text.strip_prefix('{').and_then(|counts| counts.split_once('}')) {
        let (least, most) = counts.split_once(',').unwrap_or((counts, counts));
        let count = |text: &str| text.parse::<u32>().ok().filter(|count| count.to_string() == text);
        let most = count(if most.is_empty() { least } else { most });
        let Some((least, most)) = count(least).zip(most) else { return Ok(None) };
        if most > 1000 || least > most {
            return Err(format!("invalid repeat count: `{{{counts}}}`"));
        }
        length = counts.len() + 2;
    }
    Ok((length > 0).then(|| length + usize::from(text[length..].starts_with('?'))))
}

/// A pattern that is being translated.
struct Reading<'t> {
    out: String,
    rest: &'t str,
}

impl Reading<'_> {
    fn put(&mut self, length: usize, written: &str) {
        self.out.push_str(written);
        self.rest = &self.rest[length..];
    }

    fn keep(&mut self, length: usize) {
        self.put(length, &self.rest[..length]);
    }

    /// What a backslash means.
    fn escape(&mut self, in_class: bool) {
        let letter = self.rest.chars().nth(1).unwrap_or_default();
        let braces = if "pPx".contains(letter) { self.rest.find('}') } else { None };
        let written = match letter {
            'd' => "[:digit:]",
            'D' => "[:^digit:]",
            'w' => "[:word:]",
            'W' => "[:^word:]",
            's' => "[:space:]",
            'S' => "[:^space:]",
            '<' => "<",
            '>' => ">",
            // The other engine knows the borders of no other words.
            'b' if !in_class && cfg!(feature = "cel") => "(?-u:\\b)",
            'B' if !in_class && cfg!(feature = "cel") => "(?-u:\\B)",
            'Q' if !in_class => {
                let quoted = &self.rest[2..];
                let literal = quoted.split_once("\\E").map_or(quoted, |(literal, _)| literal);
                let length = (literal.len() + 4).min(self.rest.len());
                return self.put(length, &regex_lite::escape(literal));
            }
            '\0' => return self.keep(1),
            _ if self.rest[1 + letter.len_utf8()..].starts_with('{') && braces.is_some() => {
                return self.keep(braces.map_or(2, |end| end + 1));
            }
            _ => return self.keep(1 + letter.len_utf8()),
        };
        let is_name = written.starts_with("[:") && !in_class;
        self.put(2, &if is_name { format!("[{written}]") } else { written.to_owned() });
    }

    /// A class of letters: what joins classes elsewhere is a letter here, and so is a bracket at its beginning.
    fn class(&mut self) {
        self.keep(if self.rest.starts_with("[^") { 2 } else { 1 });
        let (mut is_first, mut is_dash) = (true, false);
        while let Some(letter) = self.rest.chars().next() {
            let name = self.rest.strip_prefix("[:").and_then(|name| name.find(":]"));
            match (letter, name) {
                ('\\', _) => self.escape(true),
                (_, Some(end)) => self.keep(end + 4),
                (']', _) if !is_first => return self.keep(1),
                ('[' | ']' | '&' | '~', _) => self.put(1, &format!("\\{letter}")),
                ('-', _) if is_dash => self.put(1, "\\-"),
                _ => self.keep(letter.len_utf8()),
            }
            (is_first, is_dash) = (false, letter == '-' && !is_dash);
        }
    }
}

/// Go's error for a pattern that cannot be read.
fn words(text: &str) -> String {
    let told = Regex::new(text).err().map(|error| error.to_string()).unwrap_or_default();
    let mistake = told.lines().find_map(|line| line.strip_prefix("error: ")).unwrap_or_default();
    // The second line repeats the pattern, the third marks the place.
    let marks = told.lines().nth(2).unwrap_or_default();
    let at = marks.find('^').map_or(0, |column| column.saturating_sub(4));
    let from: String = text.chars().skip(at).collect();
    let marked = from.chars().take(marks.matches('^').count()).collect();
    let (why, shown) = match mistake {
        "unclosed character class" => ("missing closing ]", from),
        "unclosed group" => ("missing closing )", text.to_owned()),
        "unopened group" => ("unexpected )", text.to_owned()),
        "repetition operator missing expression" => ("missing argument to repetition operator", marked),
        "look-around, including look-ahead and look-behind, is not supported" => {
            ("invalid or unsupported Perl syntax", marked)
        }
        "incomplete escape sequence, reached end of pattern prematurely" => {
            ("trailing backslash at end of expression", String::new())
        }
        _ if mistake.contains("escape sequence") || mistake.contains("backreferences") => {
            ("invalid escape sequence", marked)
        }
        _ if mistake.contains("invalid character class range") => ("invalid character class range", marked),
        _ => ("invalid syntax", text.to_owned()),
    };
    format!("error parsing regexp: {why}: `{shown}`")
}
