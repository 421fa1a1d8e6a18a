// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v3"

	"github.com/creelrm/creel/e2e/process"
)

const root = "../.."

// compose is what the tests need of the file.
type compose struct {
	Services map[string]service `yaml:"services"`
	Volumes  map[string]any     `yaml:"volumes"`
}

type service struct {
	Build       string         `yaml:"build"`
	Image       string         `yaml:"image"`
	Command     []string       `yaml:"command"`
	NetworkMode string         `yaml:"network_mode"`
	Volumes     []string       `yaml:"volumes"`
	Ports       []string       `yaml:"ports"`
	DependsOn   map[string]any `yaml:"depends_on"`
	Health      struct {
		Test []string `yaml:"test"`
	} `yaml:"healthcheck"`
}

// host is the service whose network this one lives in.
func (s service) host(own string) string {
	if other, ok := strings.CutPrefix(s.NetworkMode, "service:"); ok {
		return other
	}
	return own
}

func readCompose(t *testing.T) (compose, []byte) {
	b, err := os.ReadFile(filepath.Join(root, "docker-compose.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var c compose
	if err := yaml.Unmarshal(b, &c); err != nil {
		t.Fatal(err)
	}
	return c, b
}

func schema(t *testing.T) *jsonschema.Schema {
	f, err := os.Open(filepath.Join(root, "deploy/schema/compose-spec.json"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	doc, err := jsonschema.UnmarshalJSON(f)
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("compose-spec.json", doc); err != nil {
		t.Fatal(err)
	}
	return c.MustCompile("compose-spec.json")
}

// validate holds YAML text against the schema.
func validate(t *testing.T, s *jsonschema.Schema, text []byte) error {
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	b, err := json.Marshal(doc)
	if err != nil {
		t.Fatal(err)
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(b))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(v)
}

func TestTheComposeFileFollowsItsSchema(t *testing.T) {
	s := schema(t)
	c, text := readCompose(t)
	if err := validate(t, s, text); err != nil {
		t.Fatal(err)
	}
	broken := bytes.Replace(text, []byte("network_mode:"), []byte("network_mood:"), 1)
	if err := validate(t, s, broken); err == nil {
		t.Error("the schema takes a key that does not exist")
	}
	for name, s := range c.Services {
		for _, v := range s.Volumes {
			from, _, _ := strings.Cut(v, ":")
			if strings.HasPrefix(from, "./") {
				if _, err := os.Stat(filepath.Join(root, from)); err != nil {
					t.Errorf("%s mounts what is not there: %v", name, err)
				}
			} else if _, ok := c.Volumes[from]; !ok {
				t.Errorf("%s mounts the volume %s, which is not declared", name, from)
			}
		}
		for _, p := range s.Ports {
			if !strings.HasPrefix(p, "127.0.0.1:") {
				t.Errorf("%s publishes %s to the network; bind loopback", name, p)
			}
		}
		for on := range s.DependsOn {
			if _, ok := c.Services[on]; !ok {
				t.Errorf("%s depends on %s, which is not there", name, on)
			}
		}
	}
}

func TestTheServicesRunAndTheTourWorks(t *testing.T) {
	c, _ := readCompose(t)
	dir := t.TempDir()
	creel := filepath.Join(dir, "creel")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", creel, "./cmd/creel")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("build: %v\n%s", err, out)
	}
	conf, err := filepath.Abs(filepath.Join(root, "deploy/conf"))
	if err != nil {
		t.Fatal(err)
	}

	// A loopback address for each network of the file.
	address := map[string]string{}
	for i, name := range slices.Sorted(maps.Keys(c.Services)) {
		address[name] = fmt.Sprintf("127.%d.%d.%d", 64+os.Getpid()%100, os.Getpid()/100%250, i+1)
	}
	for name, s := range c.Services {
		address[name] = address[s.host(name)]
	}
	// args are a command's with the addresses in the place of names.
	args := func(name string, command []string) []string {
		replace := []string{
			"/etc/creel",
			conf,
			"/data",
			filepath.Join(dir, name),
			"0.0.0.0",
			address[name],
			"localhost",
			address[name],
		}
		for other, at := range address {
			replace = append(replace, "//"+other+":", "//"+at+":", "="+other+":", "="+at+":")
		}
		r := strings.NewReplacer(replace...)
		out := make([]string, len(command))
		for i, a := range command {
			out[i] = r.Replace(a)
			if key, value, ok := strings.Cut(a, "="); ok && address[value] != "" {
				out[i] = key + "=" + address[value]
			}
		}
		return out
	}

	order := []string{
		"redis",
		"sc-1",
		"sc-2",
		"sc-3",
		"proxy-1",
		"proxy-2",
		"proxy-3",
		"nodes-1",
		"nodes-2",
		"nodes-3",
		"router-1",
		"router-2",
	}
	for name := range c.Services {
		if name != "prometheus" && !slices.Contains(order, name) {
			t.Errorf("this test does not start %s", name)
		}
	}
	for _, name := range order {
		s := c.Services[name]
		work := filepath.Join(dir, name)
		if err := os.Mkdir(work, 0o700); err != nil {
			t.Fatal(err)
		}
		command := process.Command{Name: name, Args: append([]string{creel}, args(name, s.Command)...), Dir: work}
		if name == "redis" { // the image's command is the program itself
			command.Args = append(args(name, s.Command), "--bind", address[name])
		}
		p := process.Start(t, command)
		switch {
		case name == "redis":
			p.WaitPort(t, address[name]+":6379")
		case len(s.Health.Test) > 1 && s.Health.Test[1] == "creel":
			_, all, code := process.Run(
				t.Context(),
				t,
				process.Command{
					Name: "ready",
					Args: append([]string{creel}, append(args(name, s.Health.Test[2:]), "--wait", "60s")...),
					Dir:  work,
				},
			)
			if code != 0 {
				t.Fatalf("%s is not ready: %s\n%s", name, all, p.Tail(20))
			}
		}
	}
	web := "http://" + address["router-1"] + ":8089"
	awaitNodes(t, web, 600)
	targetsAnswer(t, address)

	tour := readTour(t)
	t.Logf("tour:\n%s", tour)
	_, out, code := process.Run(
		t.Context(),
		t,
		process.Command{Name: "tour", Args: []string{"bash", "-euo", "pipefail", "-c", tour}, Dir: dir,
			Env: []string{"PATH=" + dir + ":" + os.Getenv("PATH"), "CREEL_SERVER=" + web}},
	)
	if code != 0 {
		t.Fatalf("the tour failed with %d:\n%s", code, out)
	}
	for _, want := range []string{"sc-1", "sc-2", "sc-3", "KILLED"} {
		if !strings.Contains(out, want) {
			t.Errorf("the tour does not show %s:\n%s", want, out)
		}
	}
}

// awaitNodes waits until the router sees so many nodes.
func awaitNodes(t *testing.T, web string, n int) {
	var seen string
	err := process.Poll(t.Context().Done(), func() bool {
		resp, err := http.Get(web + "/ws/v1/cluster/metrics")
		if err != nil {
			return false
		}
		defer resp.Body.Close()
		var doc struct {
			ClusterMetrics struct {
				ActiveNodes int `json:"activeNodes"`
			} `json:"clusterMetrics"`
		}
		b, err := io.ReadAll(resp.Body)
		seen = string(b)
		return err == nil && json.Unmarshal(b, &doc) == nil && doc.ClusterMetrics.ActiveNodes == n
	})
	if err != nil {
		t.Fatalf("%d nodes did not come: %v\n%s", n, err, seen)
	}
}

// targetsAnswer asks every target of prometheus.yml for its metrics.
func targetsAnswer(t *testing.T, address map[string]string) {
	b, err := os.ReadFile(filepath.Join(root, "deploy/prometheus/prometheus.yml"))
	if err != nil {
		t.Fatal(err)
	}
	var conf struct {
		Jobs []struct {
			Static []struct {
				Targets []string `yaml:"targets"`
			} `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	if err := yaml.Unmarshal(b, &conf); err != nil {
		t.Fatal(err)
	}
	asked := 0
	var all strings.Builder
	for _, j := range conf.Jobs {
		for _, s := range j.Static {
			for _, target := range s.Targets {
				name, port, _ := strings.Cut(target, ":")
				resp, err := http.Get("http://" + address[name] + ":" + port + "/metrics")
				if err != nil {
					t.Errorf("%s: %v", target, err)
					continue
				}
				text, err := io.ReadAll(resp.Body)
				resp.Body.Close()
				if err != nil || !strings.Contains(string(text), "\ncreel_") {
					t.Errorf("%s has no metrics of creel: %v", target, err)
				}
				all.Write(text)
				asked++
			}
		}
	}
	for _, metric := range alertMetrics(t) {
		if !strings.Contains(all.String(), "\n"+metric+" ") && !strings.Contains(all.String(), "\n"+metric+"{") {
			t.Errorf("alerts.yml asks for %s, which no target has", metric)
		}
	}
	if asked != 5 {
		t.Errorf("%d targets answered, want 5", asked)
	}
}

// readTour takes the tour's commands from the README.
func readTour(t *testing.T) string {
	b, err := os.ReadFile(filepath.Join(root, "README.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, ok := strings.Cut(string(b), "<!-- tour -->")
	_, rest, fence := strings.Cut(rest, "```sh\n")
	tour, _, end := strings.Cut(rest, "```")
	if !ok || !fence || !end {
		t.Fatal("the README has no tour")
	}
	return tour
}
