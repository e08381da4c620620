// Copyright 2026 The Perseus Authors
// SPDX-License-Identifier: Apache-2.0

// The search of the site runs in a worker. Browsers start none for a page that was opened as a file:
// there, the worker's script runs in a hidden frame.
if (location.protocol === "file:") {
  window.IFrameWorker = class extends EventTarget {
    constructor(url) {
      super();
      const frame = document.createElement("iframe");
      frame.hidden = true;
      document.body.append(frame);
      this.scope = frame.contentWindow;
      this.scope.postMessage = (data) => this.dispatchEvent(new MessageEvent("message", { data }));
      const script = frame.contentDocument.createElement("script");
      script.src = url;
      this.started = new Promise((resolve) => (script.onload = resolve));
      frame.contentDocument.body.append(script);
    }

    postMessage(data) {
      const event = new this.scope.MessageEvent("message", { data });
      this.started.then(() => this.scope.dispatchEvent(event));
    }
  };
  window.Worker = window.IFrameWorker;
}
