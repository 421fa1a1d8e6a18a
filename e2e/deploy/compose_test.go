// SPDX-License-Identifier: Apache-2.0

package deploy

import (
	"bytes"
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
	"go.yaml.in/yaml/v4"
)

const root = "../.."

// compose has the fields of the file that the tests need.
type compose struct {
	Services map[string]service `yaml:"services"`
	Volumes  map[string]any     `yaml:"volumes"`
}

type service struct {
	Volumes   []string       `yaml:"volumes"`
	Ports     []string       `yaml:"ports"`
	DependsOn map[string]any `yaml:"depends_on"`
}

func readCompose(t *testing.T, name string) (compose, []byte) {
	b, err := os.ReadFile(filepath.Join(root, name))
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
	c, text := readCompose(t, "docker-compose.yml")
	if err := validate(t, s, text); err != nil {
		t.Fatal(err)
	}
	override, more := readCompose(t, "docker-compose.hadoop.yml")
	if err := validate(t, s, more); err != nil {
		t.Fatal(err)
	}
	maps.Copy(c.Services, override.Services)
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
