// SPDX-License-Identifier: Apache-2.0

package role

import (
	"bufio"
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/creelrm/creel/internal/settings"
	"github.com/creelrm/creel/subcluster/rm/server"
)

const (
	maxHostFile      = 64 << 20
	maxHostFileDepth = 32
)

// hostLists reads the host files named in the settings.
func hostLists(s *settings.Settings) (h server.Hosts, err error) {
	if h.Include, _, err = hostFile(s.String("yarn.resourcemanager.nodes.include-path")); err != nil {
		return server.Hosts{}, err
	}
	h.Exclude, h.Timeouts, err = hostFile(s.String("yarn.resourcemanager.nodes.exclude-path"))
	if err != nil {
		return server.Hosts{}, err
	}
	h.Timeout = s.Duration("yarn.resourcemanager.nodemanager-graceful-decommission-timeout-secs")
	return h, nil
}

// hostFile reads host names: from XML if the file's name ends in .xml, as in Hadoop, and otherwise as words, where #
// starts a comment. An empty path is an empty list; a missing file is an error. Only the XML form has timeouts.
func hostFile(path string) (hosts []string, timeouts map[string]time.Duration, err error) {
	if path == "" {
		return nil, nil, nil
	}
	f, err := os.Open(path)
	if err != nil {
		return nil, nil, fmt.Errorf("host list %s: %s", path, fileReason(err))
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, maxHostFile+1))
	switch {
	case err != nil:
	case len(b) > maxHostFile:
		err = fmt.Errorf("larger than %d MiB", maxHostFile>>20)
	case strings.HasSuffix(strings.ToLower(path), ".xml"):
		hosts, timeouts, err = hostsOfXML(b)
	default:
		hosts, err = hostsOfText(b)
	}
	if err != nil {
		return nil, nil, fmt.Errorf("host list %s: %w", path, err)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), timeouts, nil
}

func hostsOfText(b []byte) (hosts []string, err error) {
	lines := bufio.NewScanner(bytes.NewReader(b))
	for lines.Scan() {
		line, _, _ := strings.Cut(lines.Text(), "#")
		for _, host := range strings.Fields(line) {
			if host[0] == '<' {
				return nil, errors.New("it is XML, but only a file whose name ends in .xml is read as XML")
			}
			hosts = append(hosts, host)
		}
	}
	return hosts, lines.Err()
}

// hostsOfXML reads the <host> elements at any depth. Each has the names of its first <name>, separated by commas, and
// the seconds of its first <timeout>. A later element of a host overrides an earlier one.
func hostsOfXML(b []byte) (hosts []string, timeouts map[string]time.Duration, err error) {
	dec := xml.NewDecoder(bytes.NewReader(b))
	fail := func(err error) ([]string, map[string]time.Duration, error) {
		line, _ := dec.InputPos()
		return nil, nil, fmt.Errorf("line %d: %w", line, err)
	}
	timeouts = map[string]time.Duration{}
	var name, timeout *strings.Builder // of the open <host>, once started
	var in *strings.Builder            // the builder for the current text
	depth, host, field := 0, 0, 0      // host and field: depths of the open elements
	for roots := 0; ; {
		tok, err := dec.Token()
		switch {
		case err == io.EOF && roots == 0:
			return fail(errors.New("no element"))
		case err == io.EOF:
			return hosts, timeouts, nil
		case err != nil:
			return fail(err)
		}
		switch t := tok.(type) {
		case xml.Directive:
			if bytes.HasPrefix(bytes.ToUpper(t), []byte("DOCTYPE")) {
				return fail(errors.New("a DOCTYPE is not allowed"))
			}
		case xml.StartElement:
			if depth == 0 {
				roots++
			}
			if depth++; depth > maxHostFileDepth || roots > 1 {
				return fail(errors.New("elements nested too deep, or after the first one"))
			}
			switch local := t.Name.Local; {
			case local == "host" && host > 0:
				return fail(errors.New("<host> inside <host>"))
			case local == "host" && depth > 1:
				host, name, timeout = depth, nil, nil
			case host > 0 && field == 0 && local == "name" && name == nil:
				name, field = &strings.Builder{}, depth
				in = name
			case host > 0 && field == 0 && local == "timeout" && timeout == nil:
				timeout, field = &strings.Builder{}, depth
				in = timeout
			}
		case xml.CharData:
			if in != nil {
				in.Write(t)
			}
		case xml.EndElement:
			switch depth {
			case field:
				in, field = nil, 0
			case host:
				host = 0
				if hosts, err = addHosts(hosts, timeouts, name, timeout); err != nil {
					return fail(err)
				}
			}
			depth--
		}
	}
}

// addHosts adds the hosts of one <host>.
func addHosts(
	hosts []string, timeouts map[string]time.Duration, name, timeout *strings.Builder,
) ([]string, error) {
	var limit time.Duration
	if timeout != nil {
		seconds, err := strconv.ParseInt(strings.TrimSpace(timeout.String()), 10, 32)
		if err != nil {
			return nil, fmt.Errorf("timeout %q is not a whole number of seconds", timeout)
		}
		limit = time.Duration(seconds) * time.Second
	}
	if name == nil {
		return hosts, nil
	}
	for host := range strings.FieldsFuncSeq(name.String(), func(r rune) bool { return r == ',' || r == '\n' }) {
		if host = strings.TrimSpace(host); host == "" {
			continue
		}
		hosts = append(hosts, host)
		delete(timeouts, host)
		if timeout != nil {
			timeouts[host] = limit
		}
	}
	return hosts, nil
}
