// A server and its clients, to be watched: `server serve` says its address and answers until it is killed,
// `server ask ADDRESS REQUESTS CLIENTS` asks it and ends.
package main

import (
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"sync"
)

func main() {
	switch {
	case len(os.Args) == 2 && os.Args[1] == "serve":
		serve()
	case len(os.Args) == 5 && os.Args[1] == "ask":
		ask(os.Args[2], number(os.Args[3]), number(os.Args[4]))
	default:
		os.Exit(2)
	}
}

func must(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func number(text string) int {
	n, err := strconv.Atoi(text)
	must(err)
	return n
}

func serve() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	must(err)
	fmt.Println(listener.Addr())
	must(http.Serve(listener, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, "an answer\n")
	})))
}

func ask(address string, requests, clients int) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: clients}}
	var all sync.WaitGroup
	for i := 0; i < clients; i++ {
		all.Add(1)
		go func() {
			defer all.Done()
			for j := 0; j < requests/clients; j++ {
				answer, err := client.Get("http://" + address + "/")
				must(err)
				_, err = io.Copy(io.Discard, answer.Body)
				must(err)
				answer.Body.Close()
			}
		}()
	}
	all.Wait()
}
