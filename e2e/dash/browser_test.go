// SPDX-License-Identifier: Apache-2.0

package dash

import (
	"archive/zip"
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/creelrm/creel/e2e/process"
	"github.com/creelrm/creel/internal/programs"
	"github.com/creelrm/creel/policies/rebalancer"
)

type rebalancerQueue = rebalancer.QueueState

// screenshots rewrites the screenshots of docs/dashboard.
var screenshots = flag.Bool("screenshots", false, "write the screenshots in docs/dashboard anew")

// browser is Chromium with its recorded errors.
type browser struct {
	t   *testing.T
	ctx context.Context

	mu         sync.Mutex
	complaints []string
}

func newBrowser(t *testing.T) *browser {
	t.Helper()
	path, err := programs.Path("chromium")
	if err != nil {
		t.Fatal(err)
	}
	options := append(
		chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(path),
		chromedp.NoSandbox,
		chromedp.UserDataDir(t.TempDir()),
		chromedp.WindowSize(1200, 900),
		chromedp.WSURLReadTimeout(2*time.Minute),
	)
	ctx, cancel := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(cancel)
	b := &browser{t: t}
	b.ctx, cancel = chromedp.NewContext(ctx, chromedp.WithListener(func(event any) {
		b.mu.Lock()
		defer b.mu.Unlock()
		switch e := event.(type) {
		case *runtime.EventExceptionThrown:
			b.complaints = append(b.complaints, fmt.Sprint(e.ExceptionDetails.Text, " ", e.ExceptionDetails.URL))
		case *log.EventEntryAdded:
			if e.Entry.Level == log.EntryLevelError {
				b.complaints = append(b.complaints, e.Entry.Text+" "+e.Entry.URL)
			}
		}
	}))
	t.Cleanup(cancel)
	return b
}

func (b *browser) do(actions ...chromedp.Action[chromedp.Void]) {
	b.t.Helper()
	if err := chromedp.Do(b.ctx, actions...); err != nil {
		b.t.Fatal(err)
	}
}

func (b *browser) open(url string) {
	b.t.Helper()
	b.do(chromedp.Navigate(url))
}

func (b *browser) eval(script string) string {
	b.t.Helper()
	out, err := chromedp.Run(b.ctx, chromedp.Evaluate[string](script))
	// A page that is loaded again meanwhile, as after a change, is asked again: scripts read it, or set it to one value.
	for tries := 0; tries < 20 && err != nil && strings.Contains(err.Error(), "navigated or closed"); tries++ {
		time.Sleep(50 * time.Millisecond)
		out, err = chromedp.Run(b.ctx, chromedp.Evaluate[string](script))
	}
	if err != nil {
		b.t.Fatalf("%s: %v", script, err)
	}
	return out
}

func (b *browser) text(selector string) string {
	b.t.Helper()
	return b.eval(`(document.querySelector(` + strconv.Quote(selector) + `)?.innerText ?? "")`)
}

func (b *browser) count(selector string) int {
	b.t.Helper()
	n, err := strconv.Atoi(b.eval(`String(document.querySelectorAll(` + strconv.Quote(selector) + `).length)`))
	if err != nil {
		b.t.Fatal(err)
	}
	return n
}

// rows is a table's body, cell by cell, without the signs before states.
func (b *browser) rows(table string) (out [][]string) {
	b.t.Helper()
	text := b.eval(`JSON.stringify([...document.querySelectorAll(` + strconv.Quote(table+" tbody tr") +
		`)].map(r => [...r.cells].map(c => c.innerText)))`)
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		b.t.Fatal(err)
	}
	return out
}

func (b *browser) until(what string, ok func() bool) {
	b.t.Helper()
	for began := time.Now(); !ok(); {
		if err := b.t.Context().Err(); err != nil || time.Since(began) > process.Guard {
			b.t.Fatalf("waiting until %s: %v; the page says\n%s", what, err, b.text("body"))
		}
		time.Sleep(50 * time.Millisecond)
	}
}

func (b *browser) untilLive() {
	b.t.Helper()
	b.until("the page is live", func() bool { return b.text("#status") == "live" })
}

func (b *browser) press(key string) { b.do(chromedp.KeyEvent(key)) }

// typeInto replaces the text of a field, as typing does.
func (b *browser) typeInto(selector, text string) {
	b.t.Helper()
	b.eval(`document.querySelector(` + strconv.Quote(selector) + `).value = ""`)
	b.do(chromedp.Focus(selector), chromedp.SendKeys(selector, text))
}

// submit sends a form by its keyboard way where it has one line, by its button else.
func (b *browser) submit(form string) {
	b.t.Helper()
	if b.count(form+" button") == 0 {
		b.do(chromedp.SendKeys(form+" input", kb.Enter))
		return
	}
	b.do(chromedp.Click(form + " button"))
}

// confirm presses the button of a change, and the one that confirms it.
func (b *browser) confirm(form string) {
	b.t.Helper()
	b.do(chromedp.Click(form+" button"), chromedp.WaitVisible("dialog"))
	if at := b.eval(`document.activeElement.textContent`); at != "Cancel" {
		b.t.Errorf("%s: the focus of the question is at %q", form, at)
	}
	b.do(chromedp.Click("dialog .danger"))
}

func (b *browser) narrow() {
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		size := emulation.SetDeviceMetricsOverrideParams{Width: 360, Height: 800, DeviceScaleFactor: 1}
		_, err := cdp.Call(ctx, t, emulation.SetDeviceMetricsOverride, size)
		return err
	}))
}

// colours makes the browser prefer a scheme, light or dark; "" is its own.
func (b *browser) colours(scheme string) {
	b.do(chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		media := emulation.SetEmulatedMediaParams{
			Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		}
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, media)
		return err
	}))
}

// quiet fails on browser errors that contain none of the expected texts.
func (b *browser) quiet(expected ...string) {
	b.t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, c := range b.complaints {
		known := false
		for _, text := range expected {
			known = known || strings.Contains(c, text)
		}
		if !known {
			b.t.Errorf("the browser complains: %s", c)
		}
	}
}

// axe has the page looked over by axe-core, by light and by dark.
func (b *browser) axe(what string) {
	b.t.Helper()
	if b.eval(axeSource(b.t)+"; typeof axe") != "object" {
		b.t.Fatal("axe-core did not load")
	}
	for _, scheme := range []string{"light", "dark"} {
		b.colours(scheme)
		b.eval(`window.found = null;
			axe.run(document).then(r => { window.found = JSON.stringify({
				bad: r.violations.map(v => v.id + ": " + v.help + " at " + 
					v.nodes.map(n => n.target.join(" ") + " " + n.failureSummary).join("; ")),
				good: r.passes.length}); }).catch(e => { window.found = JSON.stringify({bad: [String(e)], good: 0}); }); ""`)
		b.until("axe has looked", func() bool { return b.eval(`window.found ?? ""`) != "" })
		var found struct {
			Bad  []string
			Good int
		}
		if err := json.Unmarshal([]byte(b.eval(`window.found`)), &found); err != nil {
			b.t.Fatal(err)
		}
		for _, v := range found.Bad {
			b.t.Errorf("%s, %s: %s", what, scheme, v)
		}
		if found.Good < 15 {
			b.t.Errorf("%s, %s: axe has passed only %d rules", what, scheme, found.Good)
		}
	}
	b.colours("")
}

// axe-core comes in a wheel of PyPI, which holds its one file: npm is not among the
// programs of a test machine, Python is.
const (
	axeWheel = "axe-core-python==0.1.0"
	axeSum   = "f99f6bd674726c631c5e20b876983b44dff2b8f452a0ccf08f3c23ee45d0aac3"
)

var axeSource = func() func(t *testing.T) string {
	var once sync.Once
	var source string
	var failed error
	return func(t *testing.T) string {
		t.Helper()
		once.Do(func() { source, failed = loadAxe(t.Context()) })
		if failed != nil {
			t.Fatalf("axe-core is not here: %v", failed)
		}
		return source
	}
}()

// loadAxe reads axe-core from the user's cache, where it is put at the first time.
func loadAxe(ctx context.Context) (string, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return "", err
	}
	dir := filepath.Join(cache, "creel-e2e", "axe")
	wheel := filepath.Join(dir, "axe_core_python-0.1.0-py3-none-any.whl")
	if _, err := os.Stat(wheel); err != nil {
		python, err := programs.Path("python3")
		if err != nil {
			return "", err
		}
		venv := filepath.Join(dir, "venv")
		for _, args := range [][]string{
			{python, "-m", "venv", venv},
			{filepath.Join(venv, "bin", "python"), "-m", "pip", "download", "--no-deps", "--dest", dir, axeWheel},
		} {
			if out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput(); err != nil {
				return "", fmt.Errorf("%v: %w\n%s", args, err, out)
			}
		}
	}
	data, err := os.ReadFile(wheel)
	if err != nil {
		return "", err
	}
	if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != axeSum {
		return "", fmt.Errorf("%s is not the file that this test knows", wheel)
	}
	files, err := zip.NewReader(bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return "", err
	}
	f, err := files.Open("axe_core_python/axe.min.js")
	if err != nil {
		return "", err
	}
	defer f.Close()
	source, err := io.ReadAll(f)
	return string(source), err
}

// maxScreenshot bounds a screenshot, in bytes.
const maxScreenshot = 150_000

// screenshot takes a screenshot; with -screenshots it replaces the one in docs.
func (b *browser) screenshot(name string) {
	b.t.Helper()
	png, err := chromedp.Run(b.ctx, chromedp.CaptureScreenshot())
	if err != nil {
		b.t.Fatal(err)
	}
	if len(png) > maxScreenshot || len(png) < 5_000 {
		b.t.Errorf("the screenshot of %s has %d bytes", name, len(png))
	}
	if *screenshots {
		if err := os.WriteFile(filepath.Join("..", "..", "docs", "dashboard", name+".png"), png, 0o644); err != nil {
			b.t.Fatal(err)
		}
	}
}
