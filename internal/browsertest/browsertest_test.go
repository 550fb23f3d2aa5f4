package browsertest

import (
	"bytes"
	"fmt"
	"image/png"
	"net"
	"strings"
	"testing"
)

// TestOpenSeesWhatAPageDoes is the control of every test of a page: what such tests
// say does not happen is seen here when it does.
func TestOpenSeesWhatAPageDoes(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	asked := make(chan struct{}, 10)
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			asked <- struct{}{}
			c.Close()
		}
	}()
	page := fmt.Sprintf(`<!DOCTYPE html><meta name="viewport" content="width=device-width"><title>before</title><p id=p>x</p>
<style>@media (prefers-color-scheme: dark) { p { color: rgb(1, 2, 3) } }</style>
<img src="http://%s/picture"><img src="http://192.0.2.1/far"><img src="http://name.example/far"><script>document.title = "after"; console.error("complaint"); nothing()</script>`, l.Addr())
	p := Open(t, []byte(page), Phone)
	<-asked
	var title, colour string
	var width int
	p.Eval("document.title", &title)
	p.Eval("innerWidth", &width)
	p.Show(View{Width: 700, Height: 300, Dark: true})
	p.Eval("getComputedStyle(document.getElementById('p')).color", &colour)
	if title != "after" || width != Phone.Width || colour != "rgb(1, 2, 3)" {
		t.Errorf("title %q, width %d, colour %q", title, width, colour)
	}
	console := strings.Join(p.Console(), "\n")
	if n := strings.Count(console, "net::ERR_"); n != 3 {
		t.Errorf("%d of 3 things that were asked for did not come:\n%s", n, console)
	}
	if all := strings.Join(p.Requests(), " "); !strings.Contains(all, l.Addr().String()+"/picture") || strings.Count(all, "/far") != 2 {
		t.Errorf("requests: %s", all)
	}
	// What is beyond this machine is not even tried.
	for _, want := range []string{"complaint", "Uncaught", "ERR_PROXY_CONNECTION_FAILED"} {
		if !strings.Contains(console, want) {
			t.Errorf("the console has no %q:\n%s", want, console)
		}
	}
	config, err := png.DecodeConfig(bytes.NewReader(p.Picture()))
	if err != nil || config.Width != 700 || config.Height != 300 {
		t.Errorf("the picture is %dx%d, %v", config.Width, config.Height, err)
	}
}
