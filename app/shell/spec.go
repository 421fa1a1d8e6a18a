// SPDX-License-Identifier: Apache-2.0

package shell

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/proto"

	"github.com/creelrm/creel"
	pb "github.com/creelrm/creel/internal/yarnpb"
)

// EnvSpec is the environment variable with the Spec, in the AM's environment.
const EnvSpec = "CREEL_SHELL"

// Limits of a Spec: the capacity of one AM and one message.
const (
	MaxContainers = 100_000
	maxSpec       = 64 << 10
)

// Spec describes a run of `creel run`.
type Spec struct {
	// Command is a program with its arguments, or one shell line.
	Command    []string          `json:"command"`
	Containers int               `json:"containers"`
	MemoryMB   int64             `json:"memory_mb"` // of each container
	VCores     int64             `json:"vcores"`
	Env        map[string]string `json:"env,omitempty"` // of each container
	// Scheduler is the address of the AM's scheduler or proxy, with $NAMES from its node's environment; "" uses the
	// node's configuration.
	Scheduler string `json:"scheduler,omitempty"`
}

// Check returns an error for an invalid Spec.
func (s Spec) Check() error {
	switch {
	case len(s.Command) == 0 || strings.TrimSpace(s.Command[0]) == "":
		return fmt.Errorf("no command is given")
	case s.Containers < 1 || s.Containers > MaxContainers:
		return fmt.Errorf("%d containers: give 1 to %d", s.Containers, MaxContainers)
	case s.MemoryMB < 1 || s.VCores < 1:
		return fmt.Errorf("a container of %d MiB and %d vcores: give at least 1 of each", s.MemoryMB, s.VCores)
	}
	for _, word := range s.Command {
		if strings.ContainsAny(word, "\x00\n\r") {
			return fmt.Errorf("the command has line breaks, which a NodeManager's launch script cannot contain; " +
				"put it into a file")
		}
	}
	for name := range s.Env {
		if name == "" || strings.ContainsAny(name, "= \x00\n") {
			return fmt.Errorf("%q is not the name of an environment variable", name)
		}
	}
	if n := len(s.Encode()); n > maxSpec {
		return fmt.Errorf("the command and its environment are %d bytes, more than %d", n, maxSpec)
	}
	return nil
}

// Encode returns the Spec as text for the environment, in letters that no launch script changes.
func (s Spec) Encode() string {
	b, err := json.Marshal(s)
	if err != nil {
		panic(err) // it has only texts and numbers
	}
	return base64.RawURLEncoding.EncodeToString(b)
}

// Decode is the inverse of Encode.
func Decode(text string) (s Spec, err error) {
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &s)
	}
	if err != nil {
		return s, fmt.Errorf("invalid %s: %w", EnvSpec, err)
	}
	return s, s.Check()
}

// Size is the size of each container.
func (s Spec) Size() creel.Resource { return creel.NewResource(s.MemoryMB, s.VCores) }

// line returns the command for a node's shell: several words stay separate, a single one is a shell line.
func (s Spec) line() string {
	if len(s.Command) == 1 {
		return s.Command[0]
	}
	words := make([]string, len(s.Command))
	for i, w := range s.Command {
		words[i] = Quote(w)
	}
	return strings.Join(words, " ")
}

// Quote quotes a word so that a shell reads it unchanged.
func Quote(word string) string {
	const plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_@%+=:,./-"
	if word != "" && strings.Trim(word, plain) == "" {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}

// inQuotes escapes text for the double quotes into which a NodeManager's launch script puts a command.
var inQuotes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `$`, `\$`, "`", "\\`")

// Logs redirects a container's output to the files that a NodeManager serves.
const Logs = " 1><LOG_DIR>/stdout 2><LOG_DIR>/stderr"

// launch returns the launch context of each container. Simulated nodes run no programs; there the environment
// predicts the command's exit code, if the command shows it.
func (s Spec) launch(simulated bool) *pb.ContainerLaunchContextProto {
	env := map[string]string{}
	if simulated {
		if code, ok := exitCode(s.line()); ok {
			env["CREEL_SIM_EXIT"] = strconv.Itoa(code)
		}
	}
	for k, v := range s.Env {
		env[k] = v
	}
	l := &pb.ContainerLaunchContextProto{Command: []string{inQuotes.Replace("( "+s.line()+" )") + Logs}}
	names := make([]string, 0, len(env))
	for k := range env {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		v := env[k]
		if !simulated {
			v = inQuotes.Replace(v)
		}
		l.Environment = append(l.Environment, &pb.StringStringMapProto{Key: proto.String(k), Value: proto.String(v)})
	}
	return l
}

// exitCode returns the exit code of a command that only exits: "false", "exit 3", and the same by "sh -c".
func exitCode(line string) (int, bool) {
	line = strings.TrimPrefix(strings.TrimPrefix(line, "ba"), "sh -c ")
	words := strings.Fields(strings.Trim(line, `'"`))
	switch {
	case len(words) == 1 && words[0] == "false":
		return 1, true
	case len(words) == 2 && words[0] == "exit":
		n, err := strconv.ParseUint(words[1], 10, 8)
		return int(n), err == nil
	}
	return 0, false
}
