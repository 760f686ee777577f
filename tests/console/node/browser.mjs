// Unpacks Chromium where it is not yet, and prints its path.
import chromium from "@sparticuz/chromium";

console.log(await chromium.executablePath());
