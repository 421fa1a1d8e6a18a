// SPDX-License-Identifier: Apache-2.0

package transfer

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"hash"
	"io"
	"time"
)

const (
	kind    = "rm-state"
	version = 1
	// maxLine bounds a line: an entry has at most one message, of at most 64 MiB, as base64.
	maxLine = 96 << 20
)

// line is a line of the file: a header, an entry or the end.
type line struct {
	Creel   string     `json:"creel,omitempty"`
	Version int        `json:"version,omitempty"`
	From    string     `json:"from,omitempty"`
	Taken   *time.Time `json:"taken,omitempty"`

	Key   string `json:"key,omitempty"`
	Value []byte `json:"value,omitempty"`

	Entries *int   `json:"entries,omitempty"`
	SHA256  string `json:"sha256,omitempty"`
}

// writer writes the lines of a file.
type writer struct {
	out *bufio.Writer
	sum hash.Hash
	n   int
}

func newWriter(w io.Writer, from string, now time.Time) (*writer, error) {
	f := &writer{out: bufio.NewWriterSize(w, 1<<16), sum: sha256.New()}
	return f, f.line(line{Creel: kind, Version: version, From: from, Taken: &now})
}

func (f *writer) line(l line) error {
	b, err := json.Marshal(l)
	if err != nil {
		return err
	}
	b = append(b, '\n')
	f.sum.Write(b)
	_, err = f.out.Write(b)
	return err
}

func (f *writer) entry(key string, value []byte) error {
	f.n++
	return f.line(line{Key: key, Value: value})
}

func (f *writer) end() error {
	if err := f.line(line{Entries: &f.n, SHA256: hex.EncodeToString(f.sum.Sum(nil))}); err != nil {
		return err
	}
	return f.out.Flush()
}

// read calls f for each entry of a file. It returns an error unless the file is whole, and entries are in order.
func read(r io.Reader, f func(key string, value []byte) error) (n int, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 1<<16), maxLine)
	lines.Split(wholeLines)
	sum, last, number, ended := sha256.New(), "", 0, false
	for lines.Scan() {
		number++
		b := lines.Bytes()
		l, ok := parse(b)
		if !ok {
			return 0, fmt.Errorf("line %d cannot be read", number)
		}
		switch {
		case ended:
			return 0, fmt.Errorf("line %d follows the end", number)
		case number == 1:
			err = header(l)
		case l.Entries != nil:
			ended = true
			err = end(l, n, sum)
		case l.Key == "" || l.Key <= last && n > 0:
			err = fmt.Errorf("line %d has a key out of order", number)
		default:
			n, last = n+1, l.Key
			err = f(l.Key, l.Value)
		}
		if err != nil {
			return 0, err
		}
		sum.Write(b)
	}
	switch {
	case errors.Is(lines.Err(), bufio.ErrTooLong):
		return 0, fmt.Errorf("line %d is longer than %d MiB", number+1, maxLine>>20)
	case lines.Err() != nil:
		return 0, lines.Err()
	case !ended:
		return 0, fmt.Errorf("it has no end after line %d: it was cut off", number)
	}
	return n, nil
}

// parse reads a line that has one object with known fields, and nothing else.
func parse(b []byte) (l line, ok bool) {
	decoder := json.NewDecoder(bytes.NewReader(b))
	decoder.DisallowUnknownFields()
	if decoder.Decode(&l) != nil {
		return l, false
	}
	_, err := decoder.Token()
	return l, errors.Is(err, io.EOF)
}

func header(l line) error {
	switch {
	case l.Creel != kind:
		return errors.New("it is no state that creel rm export has written")
	case l.Version != version:
		return fmt.Errorf("it has version %d, and this creel reads %d", l.Version, version)
	}
	return nil
}

func end(l line, n int, sum hash.Hash) error {
	if *l.Entries != n || l.SHA256 != hex.EncodeToString(sum.Sum(nil)) {
		return errors.New("its entries differ from those that were written: it is damaged")
	}
	return nil
}

// wholeLines is bufio.ScanLines with the line's end, so that the sum covers all bytes.
func wholeLines(data []byte, atEOF bool) (advance int, token []byte, err error) {
	if i := bytes.IndexByte(data, '\n'); i >= 0 {
		return i + 1, data[:i+1], nil
	}
	if atEOF && len(data) > 0 {
		return len(data), data, nil
	}
	return 0, nil, nil
}
