"""What Streamlit runs for every browser session.

It has a folder of its own: Streamlit would list every file of a folder `pages` beside the script as a page,
for everybody.
"""

from creamtea_webapp.app import main

main()
