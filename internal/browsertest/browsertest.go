// Package browsertest opens pages that tranca writes in a real browser, for tests:
// Chromium without a window, steered by its debugging protocol over two pipes.
package browsertest

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"tranca/internal/require"
)

// patience is how long the browser may take for one answer; it is started cold, on
// machines with much else to do.
const patience = 3 * time.Minute

// Page is a page that is open in a browser. Its methods fail the test where the
// browser does not answer.
type Page struct {
	t       testing.TB
	to      *os.File
	session string
	answers chan answer
	last    int
	sending sync.Mutex

	mu       sync.Mutex
	requests []string
	console  []string
}

// answer is one message of the browser.
type answer struct {
	ID     int             `json:"id"`
	Method string          `json:"method"`
	Params json.RawMessage `json:"params"`
	Result json.RawMessage `json:"result"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error"`
	SessionID string `json:"sessionId"`
}

// dialogID is that of our answers to dialogs, which nobody waits for.
const dialogID = 1 << 30

// Open opens a page from a file of its own in a new browser, which ends with the
// test. It asks for the part "chromium". The page may reach nothing but this
// machine's loopback. View is what it is shown on.
func Open(t testing.TB, page []byte, view View) *Page {
	t.Helper()
	program := require.Program(t, "chromium")
	dir := t.TempDir()
	file := filepath.Join(dir, "page.html")
	if err := os.WriteFile(file, page, 0o600); err != nil {
		t.Fatal(err)
	}
	p := &Page{t: t, answers: make(chan answer)}
	p.start(program, dir)
	p.attach()
	p.Show(view)
	location := (&url.URL{Scheme: "file", Path: file}).String()
	p.navigate(location)
	// What the page asks for while it is laid out is asked for now. A browser that
	// takes its window for hidden draws no frame.
	p.Eval("new Promise(done => { requestAnimationFrame(() => setTimeout(done, 100)); setTimeout(done, 2000) })", nil)
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = slices.DeleteFunc(p.requests, func(u string) bool { return u == location })
	return p
}

// navigate loads a page and waits until it is there. A browser that is still busy
// with its own start may drop what it is told, or the news of it, so that it is
// asked, and told again.
func (p *Page) navigate(location string) {
	p.t.Helper()
	loaded := fmt.Sprintf("location.href === %q && document.readyState === 'complete'", location)
	for end := time.Now().Add(patience); time.Now().Before(end); {
		var refused struct{ ErrorText string }
		p.call("Page.navigate", map[string]any{"url": location}, &refused)
		for again := time.Now().Add(patience / 6); refused.ErrorText == "" && time.Now().Before(again); time.Sleep(20 * time.Millisecond) {
			var there bool
			if p.Eval(loaded, &there); there {
				return
			}
		}
	}
	p.t.Fatal("the browser did not load the page")
}

// View is a screen.
type View struct {
	Width, Height int
	// Dark says that the person prefers dark pages.
	Dark bool
}

// The screens of a desk and of a phone.
var (
	Desk  = View{Width: 1280, Height: 900}
	Phone = View{Width: 390, Height: 844}
)

// start starts the browser. It reads our messages from descriptor 3 and writes its
// own to 4, each with a NUL at its end.
func (p *Page) start(program, dir string) {
	t := p.t
	theirs, to, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	from, answers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(program, "--headless", "--no-sandbox", "--remote-debugging-pipe",
		"--user-data-dir="+filepath.Join(dir, "profile"), "--no-first-run", "--no-default-browser-check",
		"--disable-gpu", "--disable-dev-shm-usage", "--disable-extensions", "--disable-sync", "--disable-component-update",
		"--disable-background-networking", "--disable-breakpad", "--hide-scrollbars",
		// Names lead nowhere, and addresses beyond loopback to a proxy that isn't there.
		"--host-resolver-rules=MAP * ~NOTFOUND, EXCLUDE 127.0.0.1", "--proxy-server=127.0.0.1:1", "about:blank")
	cmd.ExtraFiles = []*os.File{theirs, answers}
	cmd.Env = append(os.Environ(), "HOME="+dir, "XDG_CONFIG_HOME="+dir, "XDG_CACHE_HOME="+dir)
	var said strings.Builder
	cmd.Stderr = &said
	cmd.WaitDelay = patience // what it started may hold its streams
	ownGroup(cmd)
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirs.Close()
	answers.Close()
	p.to = to
	read := make(chan struct{})
	go func() {
		defer close(read)
		p.read(from)
	}()
	t.Cleanup(func() {
		to.Close() // it ends by itself when nobody steers it
		timer := time.AfterFunc(10*time.Second, func() { endGroup(cmd) })
		err := cmd.Wait()
		timer.Stop()
		endGroup(cmd)
		<-read
		from.Close()
		if t.Failed() {
			t.Logf("the browser ended with %v and said: %s", err, said.String())
		}
	})
}

// read takes what the browser says until it ends.
func (p *Page) read(from *os.File) {
	defer close(p.answers)
	r := bufio.NewReader(from)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			return
		}
		var a answer
		if err := json.Unmarshal(text[:len(text)-1], &a); err != nil {
			return
		}
		switch a.ID {
		case 0:
			p.event(a)
		case dialogID:
		default:
			p.answers <- a
		}
	}
}

// event keeps what the page did: what it asked for, and what it complained of.
func (p *Page) event(a answer) {
	var e struct {
		Request struct{ URL string }
		Entry   struct{ Level, Text string }
		Type    string
		Message string
		Args    []struct {
			Value       any
			Description string
		}
		ExceptionDetails struct{ Text string }
	}
	if json.Unmarshal(a.Params, &e) != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	switch a.Method {
	case "Network.requestWillBeSent":
		p.requests = append(p.requests, e.Request.URL)
	case "Page.javascriptDialogOpening":
		p.console = append(p.console, "dialog: "+e.Message)
		// Until it is closed the page does nothing else.
		_ = p.send(map[string]any{
			"id": dialogID, "method": "Page.handleJavaScriptDialog",
			"sessionId": a.SessionID, "params": map[string]any{"accept": false},
		})
	case "Log.entryAdded":
		p.console = append(p.console, e.Entry.Level+": "+e.Entry.Text)
	case "Runtime.consoleAPICalled":
		p.console = append(p.console, fmt.Sprint(e.Type, ": ", e.Args))
	case "Runtime.exceptionThrown":
		p.console = append(p.console, "exception: "+e.ExceptionDetails.Text)
	}
}

// attach makes a tab and listens to it.
func (p *Page) attach() {
	var target struct{ TargetID string }
	p.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	var session struct{ SessionID string }
	p.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &session)
	p.session = session.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network"} {
		p.call(domain+".enable", nil, nil)
	}
	p.call("Page.bringToFront", nil, nil)
}

// call has the browser do something and reads its answer into result, if that is
// not nil.
func (p *Page) call(method string, params map[string]any, result any) {
	p.t.Helper()
	p.last++
	message := map[string]any{"id": p.last, "method": method}
	if params != nil {
		message["params"] = params
	}
	if p.session != "" {
		message["sessionId"] = p.session
	}
	if err := p.send(message); err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
	a, err := p.answer()
	switch {
	case err != nil:
		p.t.Fatalf("%s: %v", method, err)
	case a.Error != nil:
		p.t.Fatalf("%s: %s", method, a.Error.Message)
	case result != nil:
		if err := json.Unmarshal(a.Result, result); err != nil {
			p.t.Fatalf("%s: %v in %s", method, err, a.Result)
		}
	}
}

// send sends one message.
func (p *Page) send(message map[string]any) error {
	text, err := json.Marshal(message)
	if err != nil {
		return err
	}
	p.sending.Lock()
	defer p.sending.Unlock()
	_, err = p.to.Write(append(text, 0))
	return err
}

func (p *Page) answer() (answer, error) {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	for {
		select {
		case a, ok := <-p.answers:
			if !ok {
				return a, errors.New("the browser is gone")
			}
			if a.ID == p.last {
				return a, nil
			}
		case <-timer.C:
			return answer{}, errors.New("the browser did not answer")
		}
	}
}

// Show changes what the page is shown on.
func (p *Page) Show(v View) {
	p.t.Helper()
	scheme := "light"
	if v.Dark {
		scheme = "dark"
	}
	p.call("Emulation.setDeviceMetricsOverride", map[string]any{
		"width": v.Width, "height": v.Height, "deviceScaleFactor": 1, "mobile": v.Width < 600,
	}, nil)
	p.call("Emulation.setEmulatedMedia", map[string]any{
		"features": []map[string]any{{"name": "prefers-color-scheme", "value": scheme}},
	}, nil)
}

// Eval has the browser evaluate an expression, whatever the page's own policy says
// of scripts, waits for it where it is a promise, and reads its value into result,
// if that is not nil.
func (p *Page) Eval(expression string, result any) {
	p.t.Helper()
	var a struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct {
			Text      string
			Exception struct{ Description string }
		}
	}
	p.call("Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true}, &a)
	if a.ExceptionDetails != nil {
		p.t.Fatalf("%s: %s %s", expression, a.ExceptionDetails.Text, a.ExceptionDetails.Exception.Description)
	}
	if result == nil {
		return
	}
	if err := json.Unmarshal(a.Result.Value, result); err != nil {
		p.t.Fatalf("%s is %s: %v", expression, a.Result.Value, err)
	}
}

// Picture returns what is on the screen, as a PNG.
func (p *Page) Picture() []byte {
	p.t.Helper()
	var shot struct{ Data []byte }
	p.call("Page.captureScreenshot", map[string]any{"format": "png"}, &shot)
	return shot.Data
}

// Requests are the addresses that the page asked for, itself aside.
func (p *Page) Requests() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.requests)
}

// Console is what the browser or the page wrote to the console: errors, and what
// its policy forbade.
func (p *Page) Console() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.console)
}
