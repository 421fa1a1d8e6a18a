// SPDX-License-Identifier: Apache-2.0

package faults

import (
	"bytes"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite docs/operations/failures.md")

// The page matches the tests' rows and names every test of this package. Its names exist: the alert in
// deploy/prometheus/alerts.yml with the metric in its rule, the metric and the log's words in the code.
func TestFailuresPageMatchesTests(t *testing.T) {
	var tests []string
	files, err := filepath.Glob("*_test.go")
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^func (Test\w+)\(t \*testing\.T\) \{\n\t(\w+)`).FindAllSubmatch(b, -1) {
			name := string(m[1])
			if name == t.Name() {
				continue
			}
			tests = append(tests, name)
			without := slices.ContainsFunc(failures, func(f failure) bool { return f.test == name && f.as != "" })
			if looks := string(m[2]) == "operatorsSee"; looks == without {
				t.Errorf("%s looks at what operators see: %v, its row wants %v", name, looks, !without)
			}
		}
	}
	told, err := os.ReadFile("../federation/faults_test.go")
	if err != nil {
		t.Fatal(err)
	}
	tests = append(tests, "TestRouterKilledBetweenAnyTwoSteps")
	for _, m := range regexp.MustCompile(`(?m)^\t\t\{"(\w+)", \w+\},$`).FindAllSubmatch(told, -1) {
		tests = append(tests, "TestFaults/"+string(m[1]))
	}
	for _, f := range failures {
		if f.in != "" && f.in != "e2e/federation" && !hasTest(t, f.in, f.test) {
			t.Errorf("package %s has no test %s", f.in, f.test)
		} else if f.in != "" && f.in != "e2e/federation" {
			tests = append(tests, f.test)
		}
	}
	alerts, err := os.ReadFile(root + "/deploy/prometheus/alerts.yml")
	if err != nil {
		t.Fatal(err)
	}
	rules := map[string]string{}
	for _, rule := range strings.Split(string(alerts), "- alert: ")[1:] {
		name, body, _ := strings.Cut(rule, "\n")
		rules[name] = body
	}
	code := sources(t)
	for _, f := range failures {
		if !slices.Contains(tests, f.test) {
			t.Errorf("there is no test %s", f.test)
		}
		if f.alert != "" && !regexp.MustCompile(`\b`+f.metric+`\b`).MatchString(rules[f.alert]) {
			t.Errorf("%s: there is no alert %s, or its rule does not ask for %s", f.test, f.alert, f.metric)
		}
		if f.metric != "" && f.metric != "up" && !named(code, f.metric) {
			t.Errorf("%s: no code has the metric %s", f.test, f.metric)
		}
		if !strings.Contains(code, f.log) {
			t.Errorf("%s: no code says %q", f.test, f.log)
		}
	}
	for _, name := range tests {
		if !slices.ContainsFunc(failures, func(f failure) bool { return f.test == name }) {
			t.Errorf("%s has no row", name)
		}
	}
	const page = root + "/docs/operations/failures.md"
	want := failuresPage()
	if *update {
		if err := os.WriteFile(page, want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if got, err := os.ReadFile(page); err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s is not what the tests say: go test ./e2e/faults -run TestFailuresPage -update (%v)", page, err)
	}
}

// hasTest reports whether a package has a test.
func hasTest(t *testing.T, pkg, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(root, pkg, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(file string) bool {
		b, err := os.ReadFile(file)
		return err == nil && strings.Contains(string(b), "\nfunc "+name+"(t *testing.T) {")
	})
}

// named reports whether code contains a metric's name, or the name's prefix up to its third underscore. Metrics of one
// kind share that prefix.
func named(code, metric string) bool {
	parts := strings.SplitAfterN(metric, "_", 4)
	return strings.Contains(code, `"`+metric+`"`) || len(parts) == 4 && strings.Contains(code, `"`+strings.Join(parts[:3], "")+`"`)
}

// sources returns all code of the product.
func sources(t *testing.T) string {
	t.Helper()
	var all strings.Builder
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (d.Name() == "e2e" || d.Name() == ".git" || d.Name() == "yarnpb"):
			return fs.SkipDir
		case !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		b, err := os.ReadFile(path)
		all.Write(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all.String()
}

func failuresPage() []byte {
	var b bytes.Buffer
	b.WriteString(`# Failures

Look up a failure: its effect, the signal, creel's promise, and the test that causes it. A test generates this page:
` + "`go test ./e2e/faults -run TestFailuresPage -update`" + `.

| failure | users see | operators see | promise | test |
| --- | --- | --- | --- | --- |
`)
	for _, f := range failures {
		var see []string
		if f.log != "" {
			see = append(see, fmt.Sprintf("log: %q", f.log))
		}
		if f.breach {
			see = append(see, "only if the promise is broken:")
		}
		if f.metric != "" {
			see = append(see, "`"+f.metric+"`")
		}
		if f.alert != "" {
			see = append(see, "alert "+f.alert)
		}
		if f.as != "" {
			see = []string{"as with `" + f.as + "`"}
		}
		if see == nil {
			see = []string{"nothing"}
		}
		test := "`" + f.test + "`"
		if f.in != "" {
			test += " of " + f.in
		}
		operators := strings.ReplaceAll(strings.Join(see, "; "), ":; ", ": ")
		fmt.Fprintf(&b, "| %s | %s | %s | %s | %s |\n", f.what, f.users, operators, f.promise, test)
	}
	return b.Bytes()
}
