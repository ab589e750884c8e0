package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"sigs.k8s.io/yaml"
)

// texts are those that some style of YAML cannot write as they are.
func texts() []string {
	long := "a sentence that goes on for so long that it does not fit into a line of eighty characters, and then some more of it"
	out := []string{
		"", " ", "a", "a b", " a", "a ", "a  b", "'", "\"", "it's", "a \"b\"", "\\", "a\\b", "a: b", "a:b", "a:", ":", ": a", ":a", "a #b", "a#b",
		"#", "- a", "-a", "-", "--", "---", "--- a", "...", "? a", "?a", "?", "!a", "&a", "*a", "|", ">", "%", "@a", "`a", "{a", "}", "[a", "]", ",", "a, b",
		"{}", "[]", "a\nb", "a\n", "\na", "\n", "\n\n", "a\n\n", "a \nb", "a\n b", " a\nb", "a\nb ", "a\n\nb\n", "a\tb", "\ta", "a\t\nb", "a\rb", "a\r\nb",
		"ä", "日本", "\U0001f600", "a\U0001f600\nb", "\u00a0", "a\u2028b", "\u2028", "a\u2029 b", "\ufeff", "\u0000", "a\u0000 #b", "\u001b[0m", "\u0007\b\v\f", "\ufffd",
		"<<", "=", "true", "yes", "No", "on", "OFF", "y", "N", "null", "~", "Null", ".inf", "-.INF", "+.inf", ".nan", ".", "..", ".5", ".e5", ".5e3", ".5e",
		"0", "-1", "+1", "1.", "1.5", "1e3", "1e", "1E+3", "1_000", "_1", "0x1f", "0x", "0X1F", "-0x1f", "0b11", "0b12", "-0b1", "0o17", "0o9", "017", "08", "09.5", "0_7",
		"9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616", "+9223372036854775808", "1e400",
		"1:30", "1:99", "12:30:45", "12:30:45.5", "-1:30", "1_0:30", "1:3:", "2026-01-02", "2026-1-2", "2026-01-32", "2026-02-29", "2024-02-29", "2026-13-01", "2026-01-02T03:04:05Z",
		"2026-01-02t03:04:05.123Z", "2026-01-02T03:04:05+02:00", "2026-01-02T03:04:05", "2026-01-02 03:04:05", "2026-01-02 03:04:05Z", "2026-01-02T03:04", "2026-01-02T24:00:00Z", "2026-01-02T3:4:5,5Z",
		"10.0.0.1", "10.0.0.0/24", "100m", "1Gi", "v1", "nginx:1.27", "http://a/b?c=d#e", "k:{\"name\":\"c\"}", "f:a", "25%", "*", "* * * * *", "*/5 * * * *", "0 3 * * 1",
		long, "'" + long, long + ": more", long + "\n" + long, "\t" + long, strings.ReplaceAll(long, " ", "  "), "\t" + strings.ReplaceAll(long, " ", "  "), strings.ReplaceAll(long, " ", "ä ") + "'s: x", strings.ReplaceAll(long, " ", ""),
		strings.Repeat("x", 85) + " ", strings.Repeat("x", 85) + " y", "'" + strings.Repeat("x", 85) + " y", "\t" + strings.Repeat("x", 85) + " y", "\t" + strings.Repeat("x", 85) + "  y", "\t" + strings.Repeat("x", 85) + " \ty",
	}
	return out
}

// values prints values as JSON, each with the YAML that Go's Kubernetes libraries make of it, as a JSON string.
func values() {
	out := bufio.NewWriter(os.Stdout)
	defer out.Flush()
	var documents []any
	for _, text := range texts() {
		documents = append(documents, map[string]any{"a": text}, map[string]any{text: "a"}, []any{text, []any{text}}, map[string]any{"a": map[string]any{"b": []any{map[string]any{"c": text, "d": 1}}}})
	}
	documents = append(documents,
		map[string]any{}, map[string]any{"a": map[string]any{}, "b": []any{}, "c": nil, "d": true, "e": []any{nil, map[string]any{}, []any{}}},
		map[string]any{"a": []any{[]any{[]any{1, 2}, map[string]any{"b": []any{3}}}}},
		map[string]any{"a": json.Number("9007199254740993"), "b": json.Number("18446744073709551615"), "c": json.Number("-1"), "d": 0.5, "e": 1e21, "f": 123456.5, "g": 1234567.5, "h": 0.0001, "i": 0.00001, "j": json.Number("1.0"), "k": json.Number("1e300"), "l": json.Number("-2.5e-7")},
		map[string]any{"a10": 1, "a2": 1, "b": 1, ".": 1, "f:x": 1, "a": 1, "A": 1, "a02": 1, "a-1": 1, "a.b": 1, "10": 1, "9": 1, "k:{\"port\":80}": 1, "ab": 1, "1.5": 1, "ä": 1, "z": 1},
		map[string]any{strings.Repeat("k", 129): map[string]any{"a": 1}, strings.Repeat("l", 129): []any{1}, strings.Repeat("m", 129): "x", strings.Repeat("n", 128): "x"},
	)
	for _, document := range documents {
		text, err := json.Marshal(document)
		if err != nil {
			panic(err)
		}
		told, err := yaml.JSONToYAML(text)
		if err != nil {
			fmt.Fprintln(os.Stderr, string(text), err)
			continue
		}
		quoted, err := json.Marshal(string(told))
		if err != nil {
			panic(err)
		}
		fmt.Fprintf(out, "%s\t%s\n", text, quoted)
	}
}
