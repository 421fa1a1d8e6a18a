// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v4"
)

// The queue tree that the guide shows is one.
func TestTheGuideShowsAQueueTreeThatHolds(t *testing.T) {
	text, err := os.ReadFile("../../docs/guide/queues.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```yaml\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) == 0 {
		t.Fatal("it shows none")
	}
	for _, b := range blocks {
		if _, _, err := readTree("-", strings.NewReader(b[1])); err != nil {
			t.Errorf("%s: %v", b[1], err)
		}
	}
}

// Every line of the documents that calls creel has a command and flags that there are, and as many arguments as it takes.
func TestTheDocumentsCallCommandsThatThereAre(t *testing.T) {
	pages := []string{"../../README.md"}
	err := filepath.WalkDir("../../docs", func(path string, _ os.DirEntry, err error) error {
		if filepath.Ext(path) == ".md" && !strings.Contains(path, "docs/reference/cli") {
			pages = append(pages, path)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	block := regexp.MustCompile("(?ms)^ *```sh\n(.*?)^ *```")
	call := regexp.MustCompile(`^(?:\w+=\$\()?(?:go run \./cmd/)?creel +(.*?)\)?$`)
	word := regexp.MustCompile(`'[^']*'|"[^"]*"|[^\s'"]+`)
	called := 0
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range block.FindAllStringSubmatch(strings.ReplaceAll(string(text), "\\\n", " "), -1) {
			for line := range strings.Lines(b[1]) {
				line, _, _ = strings.Cut(strings.TrimSpace(line), " #")
				line, _, _ = strings.Cut(line, " |")
				m := call.FindStringSubmatch(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(line), "&")))
				if m == nil {
					continue
				}
				called++
				var args []string
				for _, w := range word.FindAllString(m[1], -1) {
					if w = strings.Trim(w, `'"`); strings.HasPrefix(w, "$") {
						w = "1" // of a variable
					}
					args = append(args, w)
				}
				if err := callable(args); err != nil {
					t.Errorf("%s: creel %s: %v", page, m[1], err)
				}
			}
		}
	}
	if called < 50 {
		t.Errorf("only %d calls were found", called)
	}
}

// So does every service of the compose files.
func TestComposeCallsCommandsThatThereAre(t *testing.T) {
	called := 0
	for _, file := range []string{"docker-compose.yml", "docker-compose.hadoop.yml"} {
		text, err := os.ReadFile("../../" + file)
		if err != nil {
			t.Fatal(err)
		}
		var compose struct {
			Services map[string]struct {
				Image   string
				Command []string
			}
		}
		if err := yaml.Unmarshal(text, &compose); err != nil {
			t.Fatal(err)
		}
		for name, s := range compose.Services {
			if s.Image != "creel" {
				continue
			}
			called++
			if err := callable(s.Command); err != nil {
				t.Errorf("%s: %s: %v", file, name, err)
			}
		}
	}
	if called < 14 {
		t.Errorf("only %d services were found", called)
	}
}

// callable returns the error of a command line without running it.
func callable(args []string) error {
	c, rest, err := rootCommand().Find(args)
	if err == nil {
		err = c.ParseFlags(rest)
	}
	if err == nil {
		err = c.ValidateArgs(c.Flags().Args())
	}
	return err
}
